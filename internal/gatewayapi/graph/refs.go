package graph

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayOf is the Gateway that a parentRef of a route in a namespace names, if it names one.
func GatewayOf(ref gatewayv1.ParentReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, value(ref.Group, group) == group && value(ref.Kind, "Gateway") == "Gateway"
}

// ServicesOfHTTPRoute are the Services that an HTTPRoute names, each once: those that get copies, too.
// Input.Services needs them.
func ServicesOfHTTPRoute(route *gatewayv1.HTTPRoute) []types.NamespacedName {
	return servicesOf(route.Namespace, httpRules(route))
}

// ServicesOfGRPCRoute are the same of a GRPCRoute.
func ServicesOfGRPCRoute(route *gatewayv1.GRPCRoute) []types.NamespacedName {
	return servicesOf(route.Namespace, grpcRules(route))
}

func servicesOf(namespace string, rules []rule) []types.NamespacedName {
	var names []types.NamespacedName
	add := func(ref gatewayv1.BackendObjectReference) {
		if name, is := serviceOf(ref, namespace); is && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	mirrored := func(of *actions) {
		for i := range of.mirrors {
			add(of.mirrors[i].ref)
		}
	}
	for i := range rules {
		mirrored(&rules[i].actions)
		for k := range rules[i].backends {
			add(rules[i].backends[k].ref)
			mirrored(&rules[i].backends[k].actions)
		}
	}
	return names
}

// serviceOf is the name in a reference of a route, and whether it is that of a Service.
func serviceOf(ref gatewayv1.BackendObjectReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, value(ref.Group, "") == "" && value(ref.Kind, "Service") == "Service"
}

// Certificates are the Secrets that the listeners of a Gateway name, each once, whether they may use
// them or not. Input.Secrets needs them.
func Certificates(gateway *gatewayv1.Gateway) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range gateway.Spec.Listeners {
		of := gateway.Spec.Listeners[i].TLS
		if of == nil {
			continue
		}
		for _, ref := range of.CertificateRefs {
			if name, is := secretOf(ref, gateway.Namespace); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// secretOf is the name in a reference of a Gateway, and whether it is that of a Secret.
func secretOf(ref gatewayv1.SecretObjectReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, value(ref.Group, "") == "" && value(ref.Kind, "Secret") == "Secret"
}
