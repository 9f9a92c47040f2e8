package gatewayapi

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

// SetOf is the ListenerSet that a parentRef of a route in a namespace names, if it names one.
func SetOf(ref gatewayv1.ParentReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, value(ref.Group, group) == group && value(ref.Kind, "Gateway") == setKind
}

// GatewayOfSet is the Gateway that a ListenerSet names, if it names one.
func GatewayOfSet(set *gatewayv1.ListenerSet) (types.NamespacedName, bool) {
	ref := set.Spec.ParentRef
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(set.Namespace))), Name: string(ref.Name)}
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

// ServicesOfTLSRoute are the same of a TLSRoute.
func ServicesOfTLSRoute(route *gatewayv1.TLSRoute) []types.NamespacedName {
	return servicesOf(route.Namespace, tlsRules(route))
}

// ServicesOfTCPRoute are the same of a TCPRoute.
func ServicesOfTCPRoute(route *gatewayv1.TCPRoute) []types.NamespacedName {
	return servicesOf(route.Namespace, tcpRules(route))
}

// ServicesOfUDPRoute are the same of a UDPRoute.
func ServicesOfUDPRoute(route *gatewayv1.UDPRoute) []types.NamespacedName {
	return servicesOf(route.Namespace, udpRules(route))
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

// Certificates are the Secrets that a Gateway names, each once, whether it may use them or not: those of its
// listeners, and the one with the certificate that backends are shown. Input.Secrets needs them.
func Certificates(gateway *gatewayv1.Gateway) []types.NamespacedName {
	var names []types.NamespacedName
	add := func(ref gatewayv1.SecretObjectReference) {
		if name, is := secretOf(ref, gateway.Namespace); is && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := range gateway.Spec.Listeners {
		if of := gateway.Spec.Listeners[i].TLS; of != nil {
			for _, ref := range of.CertificateRefs {
				add(ref)
			}
		}
	}
	if ref := clientCertificate(gateway); ref != nil {
		add(*ref)
	}
	return names
}

// CertificatesOfSet are the Secrets that a ListenerSet names, each once, whether it may use them or not.
func CertificatesOfSet(set *gatewayv1.ListenerSet) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range set.Spec.Listeners {
		of := set.Spec.Listeners[i].TLS
		if of == nil {
			continue
		}
		for _, ref := range of.CertificateRefs {
			if name, is := secretOf(ref, set.Namespace); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// AllowedSets are the ListenerSets that name the Gateway and that it allows, in order of precedence. It needs the Gateway, the
// ListenerSets and the Namespaces of the input.
func AllowedSets(in Input) []*gatewayv1.ListenerSet {
	b := &builder{in: in}
	b.judgeSets()
	var allowed []*gatewayv1.ListenerSet
	for _, set := range b.sets {
		if set.refused == nil {
			allowed = append(allowed, set.of)
		}
	}
	return allowed
}

// CertificatesOfSets are the Secrets that allowed ListenerSets name and may use, each once. Input.Secrets needs them. It needs
// the Grants of the input as well: a Secret that a set may not use is nothing to be looked at.
func CertificatesOfSets(in Input) []types.NamespacedName {
	var names []types.NamespacedName
	permitted, seen := newGrants(in.Grants), map[types.NamespacedName]bool{}
	for _, set := range AllowedSets(in) {
		for _, name := range CertificatesOfSet(set) {
			if !seen[name] && permitted.permit(reference{fromGroup: group, fromKind: setKind, fromNamespace: set.Namespace, toKind: "Secret", to: name}) {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// clientCertificate refers to the certificate that backends are shown. Nil: they are shown none.
func clientCertificate(gateway *gatewayv1.Gateway) *gatewayv1.SecretObjectReference {
	if gateway.Spec.TLS == nil || gateway.Spec.TLS.Backend == nil {
		return nil
	}
	return gateway.Spec.TLS.Backend.ClientCertificateRef
}

// Bundles are the ConfigMaps with certificates of authorities that a Gateway names, each once, whether it may use them
// or not. Input.Bundles needs them.
func Bundles(gateway *gatewayv1.Gateway) []types.NamespacedName {
	of := gateway.Spec.TLS
	if of == nil || of.Frontend == nil {
		return nil
	}
	validations := []*gatewayv1.FrontendTLSValidation{of.Frontend.Default.Validation}
	for i := range of.Frontend.PerPort {
		validations = append(validations, of.Frontend.PerPort[i].TLS.Validation)
	}
	var names []types.NamespacedName
	for _, in := range validations {
		if in == nil {
			continue
		}
		for _, ref := range in.CACertificateRefs {
			if name, is := configMapOf(ref, gateway.Namespace); is && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// BundlesOfPolicy are the same of a BackendTLSPolicy.
func BundlesOfPolicy(policy *gatewayv1.BackendTLSPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range policy.Spec.Validation.CACertificateRefs {
		name := types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)}
		if ref.Group == "" && ref.Kind == "ConfigMap" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ServicesOfPolicy are the Services that a BackendTLSPolicy is for.
func ServicesOfPolicy(policy *gatewayv1.BackendTLSPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, ref := range policy.Spec.TargetRefs {
		name := types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)}
		if ref.Group == "" && ref.Kind == "Service" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// configMapOf is the name in a reference of a Gateway, and whether it is that of a ConfigMap.
func configMapOf(ref gatewayv1.ObjectReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, ref.Group == "" && ref.Kind == "ConfigMap"
}

// secretOf is the name in a reference of a Gateway, and whether it is that of a Secret.
func secretOf(ref gatewayv1.SecretObjectReference, namespace string) (types.NamespacedName, bool) {
	name := types.NamespacedName{Namespace: string(value(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	return name, value(ref.Group, "") == "" && value(ref.Kind, "Secret") == "Secret"
}
