package desired

import (
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Ingress sends every host of the routes to the gateway's Service, whatever the path:
// what happens then is the gateway's business, so that a route of a known host needs no
// change of the Ingress. It returns nil when the gateway is exposed in another way, and
// without routes, where there is nothing to send.
func Ingress(gateway *slipwayv1alpha1.APIGateway) *networkingv1ac.IngressApplyConfiguration {
	if ExposeType(gateway) != slipwayv1alpha1.ExposeIngress || len(gateway.Spec.Routes) == 0 {
		return nil
	}
	spec := networkingv1ac.IngressSpec()
	if expose := gateway.Spec.Expose; expose != nil && expose.IngressClassName != nil {
		spec.WithIngressClassName(*expose.IngressClassName)
	}
	for _, tls := range gateway.Spec.TLS {
		entry := networkingv1ac.IngressTLS().WithSecretName(tls.SecretRef.Name)
		for _, host := range tls.Hosts {
			entry.WithHosts(string(host))
		}
		spec.WithTLS(entry)
	}
	for _, host := range Hosts(gateway) {
		rule := networkingv1ac.IngressRule().WithHTTP(networkingv1ac.HTTPIngressRuleValue().
			WithPaths(networkingv1ac.HTTPIngressPath().
				WithPath("/").
				WithPathType(networkingv1.PathTypePrefix).
				WithBackend(networkingv1ac.IngressBackend().
					WithService(networkingv1ac.IngressServiceBackend().
						WithName(Name(gateway)).
						WithPort(networkingv1ac.ServiceBackendPort().WithNumber(serviceHTTPPort))))))
		if host != "" {
			rule.WithHost(host)
		}
		spec.WithRules(rule)
	}
	return networkingv1ac.Ingress(IngressName(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithAnnotations(annotations(gateway, slipwayv1alpha1.ExposeIngress)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}

// HTTPRoute attaches the gateway's Service to a Gateway of the Gateway API, for every
// host of the routes. It returns nil when the gateway is exposed in another way, and
// without routes.
func HTTPRoute(gateway *slipwayv1alpha1.APIGateway) *gatewayv1ac.HTTPRouteApplyConfiguration {
	if ExposeType(gateway) != slipwayv1alpha1.ExposeHTTPRoute || gateway.Spec.Expose.Gateway == nil || len(gateway.Spec.Routes) == 0 {
		return nil
	}
	parent := gateway.Spec.Expose.Gateway
	reference := gatewayv1ac.ParentReference().
		WithGroup(gatewayv1.GroupName).
		WithKind("Gateway").
		WithName(gatewayv1.ObjectName(parent.Name))
	if parent.Namespace != "" {
		reference.WithNamespace(gatewayv1.Namespace(parent.Namespace))
	}
	if parent.SectionName != "" {
		reference.WithSectionName(gatewayv1.SectionName(parent.SectionName))
	}
	spec := gatewayv1ac.HTTPRouteSpec().
		WithParentRefs(reference).
		WithRules(gatewayv1ac.HTTPRouteRule().
			WithBackendRefs(gatewayv1ac.HTTPBackendRef().
				WithName(gatewayv1.ObjectName(Name(gateway))).
				WithPort(serviceHTTPPort)))
	// A route for any host asks for every host of the Gateway, which no list says.
	if hosts := Hosts(gateway); hosts[0] != "" {
		for _, host := range hosts {
			spec.WithHostnames(gatewayv1.Hostname(host))
		}
	}
	return gatewayv1ac.HTTPRoute(Name(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithAnnotations(annotations(gateway, slipwayv1alpha1.ExposeHTTPRoute)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}
