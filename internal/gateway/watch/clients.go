package watch

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// clientCheck is how clients prove who they are, and adds to the configuration how backends are told. If that cannot be used,
// nobody is let in.
func (t *target) clientCheck(in *apigateway.Input, config *proxy.Config) (*proxy.ClientCheck, []document.Problem) {
	if t.clients == nil {
		return nil, nil
	}
	problem := func(reason, message string) []document.Problem {
		return []document.Problem{{Route: -1, Name: "clientCertificates", Field: "spec.clientCertificates", Reason: reason, Message: message}}
	}
	clients, f := in.Clients(t.clients)
	check := &proxy.ClientCheck{Identity: clients.Identity, Roots: clients.Roots, Optional: clients.Optional}
	config.ClientHeaders = proxy.ClientHeaders{Fingerprint: clients.Fingerprint, Name: clients.Name}
	switch {
	case f != nil:
		return check, problem(f.Reason, f.Message)
	case len(t.tls) == 0:
		return check, problem(slipwayv1alpha1.ReasonInvalid, "without spec.tls nobody can show a certificate")
	case t.behindProxy:
		return check, problem(slipwayv1alpha1.ReasonInvalid, "what spec.expose.type asks for ends the TLS of clients, so none of them can show a certificate: choose NodePort, LoadBalancer or ClusterIP")
	default:
		return check, nil
	}
}
