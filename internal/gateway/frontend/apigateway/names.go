package apigateway

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
)

// Names are the names of what a spec refers to. The operator permits the pods to read these objects, and the pods follow them. Both
// take them from here, because a pod that follows more than it may read waits for nothing.
type Names struct {
	Services   map[string]bool
	Secrets    map[string]bool
	ConfigMaps map[string]bool
	// Shares tells that the replicas count the requests of a route together.
	Shares bool
	// Sessions tells that the replicas choose the endpoints of sessions alike.
	Sessions bool
}

// NamesOf returns the names in the routes, policies, streams and certificates of a spec. Secrets that pull the image are the
// kubelet's business, and the Secret that replicas have in common has a name of its own (quota.SecretName).
func NamesOf(spec *slipwayv1alpha1.APIGatewaySpec) Names {
	n := Names{Services: map[string]bool{}, Secrets: map[string]bool{}, ConfigMaps: map[string]bool{}}
	for i := range spec.Routes {
		n.addRoute(&spec.Routes[i])
	}
	for i := range spec.Streams {
		n.addStream(&spec.Streams[i])
	}
	for i := range spec.BackendPolicies {
		n.addTLS(spec.BackendPolicies[i].TLS)
	}
	for i := range spec.TLS {
		n.Secrets[spec.TLS[i].SecretRef.Name] = true
	}
	if spec.ClientCertificates != nil {
		n.addAuthorities(spec.ClientCertificates.CACertificates)
	}
	return n
}

func (n *Names) addRoute(route *slipwayv1alpha1.Route) {
	if route.BackendService != nil {
		n.Services[string(route.BackendService.Name)] = true
	}
	for _, backend := range route.Backends {
		n.Services[string(backend.Name)] = true
	}
	if route.Mirror != nil {
		n.Services[string(route.Mirror.BackendService.Name)] = true
	}
	for i := range route.Mirrors {
		n.Services[string(route.Mirrors[i].BackendService.Name)] = true
	}
	n.addAuth(route.Auth)
	n.Shares = n.Shares || route.RateLimit != nil && route.RateLimit.Count == slipwayv1alpha1.RateLimitCountedByGateway
	n.Sessions = n.Sessions || KeepsSessions(route.SessionAffinity)
}

// KeepsSessions reports whether the requests of a client go to the same endpoint.
func KeepsSessions(affinity *slipwayv1alpha1.SessionAffinity) bool {
	return affinity != nil && affinity.None == nil
}

func (n *Names) addAuth(in *slipwayv1alpha1.Auth) {
	if in == nil {
		return
	}
	if secret, _, needs := auth.CredentialsOf(in); needs {
		n.Secrets[secret] = true
	}
	if in.External != nil {
		n.Services[string(in.External.BackendService.Name)] = true
	}
}

func (n *Names) addStream(stream *slipwayv1alpha1.Stream) {
	for _, backend := range stream.Backends {
		n.Services[backend.Name] = true
	}
	for _, ref := range stream.CertificateRefs {
		n.Secrets[ref.Name] = true
	}
}

func (n *Names) addTLS(tls *slipwayv1alpha1.BackendTLS) {
	if tls == nil {
		return
	}
	n.addAuthorities(tls.CACertificates)
	if tls.ClientCertificateRef != nil {
		n.Secrets[tls.ClientCertificateRef.Name] = true
	}
}

func (n *Names) addAuthorities(refs []slipwayv1alpha1.CACertificates) {
	for _, ref := range refs {
		if ref.Kind == slipwayv1alpha1.CACertificatesSecret {
			n.Secrets[ref.Name] = true
		} else {
			n.ConfigMaps[ref.Name] = true
		}
	}
}
