package desired

import (
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/quota"
)

// Secrets are the names of the Secrets that the spec names, each once, in order. Those
// that pull the image are the kubelet's business.
func Secrets(gateway *slipwayv1alpha1.APIGateway) []string {
	var names []string
	for _, tls := range gateway.Spec.TLS {
		names = append(names, tls.SecretRef.Name)
	}
	if clients := gateway.Spec.ClientCertificates; clients != nil {
		names = append(names, authorities(clients.CACertificates, slipwayv1alpha1.CACertificatesSecret)...)
	}
	for i := range gateway.Spec.BackendPolicies {
		if tls := gateway.Spec.BackendPolicies[i].TLS; tls != nil {
			names = append(names, authorities(tls.CACertificates, slipwayv1alpha1.CACertificatesSecret)...)
			if tls.ClientCertificateRef != nil {
				names = append(names, tls.ClientCertificateRef.Name)
			}
		}
	}
	for i := range gateway.Spec.Streams {
		for _, ref := range gateway.Spec.Streams[i].CertificateRefs {
			names = append(names, ref.Name)
		}
	}
	for i := range gateway.Spec.Routes {
		names = append(names, secretsOf(gateway.Spec.Routes[i].Auth)...)
	}
	if NeedsSecret(gateway) {
		names = append(names, quota.SecretName(gateway.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secretsOf are the names of the Secrets that say who is let in.
func secretsOf(auth *slipwayv1alpha1.Auth) []string {
	switch {
	case auth == nil:
		return nil
	case auth.APIKey != nil:
		return []string{auth.APIKey.SecretRef.Name}
	case auth.Basic != nil:
		return []string{auth.Basic.SecretRef.Name}
	case auth.JWT != nil && auth.JWT.JWKSSecretRef != nil:
		return []string{auth.JWT.JWKSSecretRef.Name}
	case auth.OIDC != nil:
		return []string{auth.OIDC.ClientSecretRef.Name}
	}
	return nil
}

// NeedsSecret reports whether the replicas need a secret in common: to count the requests of a route together, or to choose
// the endpoints of sessions alike.
func NeedsSecret(gateway *slipwayv1alpha1.APIGateway) bool {
	return slices.ContainsFunc(gateway.Spec.Routes, func(route slipwayv1alpha1.Route) bool {
		return keepsSessions(route.SessionAffinity) || route.RateLimit != nil && route.RateLimit.Count == slipwayv1alpha1.RateLimitCountedByGateway
	})
}

func keepsSessions(affinity *slipwayv1alpha1.SessionAffinity) bool {
	return affinity != nil && affinity.None == nil
}

// ConfigMaps are the names of the ConfigMaps that the spec names, each once, in order.
func ConfigMaps(gateway *slipwayv1alpha1.APIGateway) []string {
	var names []string
	if clients := gateway.Spec.ClientCertificates; clients != nil {
		names = append(names, authorities(clients.CACertificates, slipwayv1alpha1.CACertificatesConfigMap)...)
	}
	for i := range gateway.Spec.BackendPolicies {
		if tls := gateway.Spec.BackendPolicies[i].TLS; tls != nil {
			names = append(names, authorities(tls.CACertificates, slipwayv1alpha1.CACertificatesConfigMap)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// authorities are the names of the objects of a kind. Without a kind it is a ConfigMap.
func authorities(refs []slipwayv1alpha1.CACertificates, kind slipwayv1alpha1.CACertificatesKind) []string {
	var names []string
	for _, ref := range refs {
		if (ref.Kind == slipwayv1alpha1.CACertificatesSecret) == (kind == slipwayv1alpha1.CACertificatesSecret) {
			names = append(names, ref.Name)
		}
	}
	return names
}
