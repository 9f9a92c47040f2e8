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
	"github.com/slipway-dev/slipway/internal/gateway/quota"
	"github.com/slipway-dev/slipway/internal/gateway/quota/peers"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
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

// share connects the replicas if the target needs that. The replicas are the endpoints of the
// Service that leads to the gateway itself. It returns the routes whose limits are not shared.
func (s *Source) share(ctx context.Context, t *target, served *table.Table) (problems []revision.Problem, again time.Time) {
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
		problems = append(problems, revision.Problem{
			Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index), Reason: slipwayv1alpha1.ReasonLimitNotShared,
			Message: "rateLimit.count: each replica allows its part of the limit meanwhile: " + text,
		})
	}
	return problems, earliest(again, later)
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
