package watch

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// addSessionKey adds the key by which all replicas choose the endpoints of sessions alike. It returns the routes that have
// sessions while there is none: the gateway makes a key of its own then.
func (s *Source) addSessionKey(t *target, config *proxy.Config) (problems []document.Problem) {
	if !t.names.Sessions {
		return nil
	}
	name := quota.SecretName(s.options.Name)
	secret, _ := s.secrets.get(name)
	if config.SessionKey = affinity.NewSessionKey(secret.data[quota.SecretKey], string(t.uid)); config.SessionKey != nil {
		return nil
	}
	for _, route := range config.Table.Routes {
		if route.Affinity == nil {
			continue
		}
		problems = append(problems, document.Problem{
			Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index), Reason: slipwayv1alpha1.ReasonAffinityNotShared,
			Message: fmt.Sprintf("sessionAffinity: each replica chooses endpoints by itself meanwhile, because Secret %q does not exist or has no key of %d bytes", name, quota.SecretBytes),
		})
	}
	return problems
}

// keepsSessions reports whether a rule may need the key of sessions.
func (n *state) keepsSessions() bool {
	for _, r := range n.routes {
		if r.http != nil && slices.ContainsFunc(r.http.Spec.Rules, func(rule gatewayv1.HTTPRouteRule) bool { return rule.SessionPersistence != nil }) {
			return true
		}
		if r.grpc != nil && slices.ContainsFunc(r.grpc.Spec.Rules, func(rule gatewayv1.GRPCRouteRule) bool { return rule.SessionPersistence != nil }) {
			return true
		}
	}
	return n.asks(func(in *slipwayv1alpha1.GatewayPolicySettings) bool {
		return apigateway.KeepsSessions(in.SessionAffinity)
	})
}

// addSessionKey does the same for a Gateway, whose pods have the secret beside the copies.
func (s *GatewaySource) addSessionKey(next *state, config *proxy.Config) []document.Problem {
	if !slices.ContainsFunc(config.Table.Routes, func(route *table.Route) bool { return route.Affinity != nil }) {
		return nil
	}
	secret, _ := s.secrets.get(s.options.BorrowedCertificates)
	if config.SessionKey = affinity.NewSessionKey(secret.data[copied.SessionsKey], string(next.uid)); config.SessionKey != nil {
		return nil
	}
	return []document.Problem{{
		Route: -1, Name: s.options.BorrowedCertificates, Field: "Secret " + s.options.BorrowedCertificates, Reason: slipwayv1alpha1.ReasonAffinityNotShared,
		Message: "each replica chooses the endpoints of sessions by itself meanwhile, because the Secret does not exist or has no secret of sessions",
	}}
}
