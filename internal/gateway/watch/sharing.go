package watch

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Sharing counts requests for all replicas together. peers.Shared does.
type Sharing interface {
	// Set makes the settings true. again is when to call it again, if that is not zero.
	Set(ctx context.Context, settings peers.Settings) (again time.Time)
	// Trouble says why requests have not been counted together for a while, or nothing. again is
	// when the answer may change by itself.
	Trouble() (text string, again time.Time)
}

// partOfLimit is what becomes of a limit that is not shared. The reason follows.
const partOfLimit = "rateLimit.count: each replica allows its part of the limit meanwhile: "

// share connects the replicas if the target needs that. The replicas are the endpoints of the
// Service that leads to the gateway itself. It returns the routes whose limits are not shared.
func (s *Source) share(ctx context.Context, t *target, served *table.Table) (problems []document.Problem, again time.Time) {
	if s.options.Shared == nil {
		return nil, time.Time{}
	}
	settings := peers.Settings{Wanted: t.names.Shares}
	if t.names.Shares {
		secret, _ := s.secrets.get(quota.SecretName(s.options.Name))
		settings.Secret, settings.Addresses = secret.data[quota.SecretKey], s.replicas()
	}
	again = s.options.Shared.Set(ctx, settings)
	text, later := s.options.Shared.Trouble()
	if text == "" {
		return nil, earliest(again, later)
	}
	for _, route := range served.Routes {
		if route.RateLimit == nil || !route.RateLimit.Shared {
			continue
		}
		problems = append(problems, document.Problem{
			Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index), Reason: slipwayv1alpha1.ReasonLimitNotShared,
			Message: partOfLimit + text,
		})
	}
	return problems, earliest(again, later)
}

// sharesLimits reports whether a rule may have a rate limit that all replicas count together.
func (n *state) sharesLimits() bool {
	return n.asks(func(in *slipwayv1alpha1.GatewayPolicySettings) bool {
		return in.RateLimit != nil && in.RateLimit.Count == slipwayv1alpha1.RateLimitCountedByGateway
	})
}

// asks reports whether a part of a GatewayPolicy asks for something.
func (n *state) asks(something func(*slipwayv1alpha1.GatewayPolicySettings) bool) bool {
	return slices.ContainsFunc(n.attached, func(p *attachedPolicy) bool {
		spec := &p.of.Spec
		return spec.Defaults != nil && something(spec.Defaults) || spec.Overrides != nil && something(spec.Overrides)
	})
}

// own is the Service that leads to the pods of the Gateway. It has no name if that is not known.
func (s *GatewaySource) own() types.NamespacedName {
	return types.NamespacedName{Namespace: s.options.Namespace, Name: copied.ServiceName(s.options.BorrowedCertificates)}
}

// share does the same for a Gateway, whose pods have the secret beside the copies. What is wrong is told once: the operator knows for
// which policies it matters.
func (s *GatewaySource) share(ctx context.Context, next *state, g *gatewayapi.Graph) (problems []document.Problem, again time.Time) {
	if s.options.Shared == nil {
		return nil, time.Time{}
	}
	settings := peers.Settings{Wanted: g.SharesLimit()}
	if settings.Wanted {
		secret, _ := s.secrets.get(s.options.BorrowedCertificates)
		settings.Secret, settings.Addresses = secret.data[copied.ReplicasKey], s.replicas(next)
	}
	again = s.options.Shared.Set(ctx, settings)
	text, later := s.options.Shared.Trouble()
	if text == "" {
		return nil, earliest(again, later)
	}
	return []document.Problem{{
		Route: -1, Name: s.name().String(), Field: "rateLimit.count", Reason: slipwayv1alpha1.ReasonLimitNotShared, Message: partOfLimit + text,
	}}, earliest(again, later)
}

// replicas returns where the replicas that take requests are reached.
func (s *GatewaySource) replicas(next *state) []string {
	name := s.own()
	var own service
	found := false
	s.services.each(next.scopes, func(of types.NamespacedName, v service) {
		if of == name {
			own, found = v, true
		}
	})
	if !found {
		return nil
	}
	var of []slice
	s.slices.each(next.scopes, func(_ types.NamespacedName, v slice) {
		if v.service == name {
			of = append(of, v)
		}
	})
	return peersOf(own, of)
}

// replicas returns where the replicas that take requests are reached.
func (s *Source) replicas() []string {
	own, found := s.services.get(s.named(s.options.Name))
	if !found {
		return nil
	}
	var of []slice
	s.slices.each(func(_ types.NamespacedName, v slice) {
		if v.service == own.name {
			of = append(of, v)
		}
	})
	return peersOf(own, of)
}

// peersOf returns the endpoints of a Service with the port for replicas: those that get requests, as in endpoints.
func peersOf(own service, of []slice) []string {
	found := choose(own, of, func(s slice, addresses []string) []string {
		out := make([]string, 0, len(addresses))
		for _, address := range addresses {
			out = append(out, net.JoinHostPort(address, strconv.Itoa(peers.Port)))
		}
		return out
	})
	slices.Sort(found)
	return slices.Compact(found)
}
