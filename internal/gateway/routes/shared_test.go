package routes_test

import (
	"strings"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/routes"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// A count that is not known may restrict more than those that are, so its route serves nothing.
func TestWhoCountsIsKnownOrTheRouteIsRefused(t *testing.T) {
	for count, want := range map[slipwayv1alpha1.RateLimitCount]struct{ shared, refused bool }{
		"":        {false, false},
		"Replica": {false, false},
		"Gateway": {true, false},
		"Cluster": {false, true},
	} {
		compiled, problems := routes.Compile(routes.Input{Routes: []slipwayv1alpha1.Route{{
			DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200},
			RateLimit:      &slipwayv1alpha1.RateLimit{Requests: 1, Count: count},
		}}})
		route := compiled.Routes[0]
		if refused := route.Unavailable != nil && len(problems) == 1; refused != want.refused {
			t.Errorf("count %q: refused is %v: %v", count, refused, problems)
		}
		if !want.refused && route.RateLimit.Shared != want.shared {
			t.Errorf("count %q: shared is %v", count, route.RateLimit.Shared)
		}
	}
}

// The pods of a Gateway do not share limits, and a limit of each replica would be a weaker one.
func TestAPolicyWithALimitOfTheGatewayIsRefused(t *testing.T) {
	limit := &slipwayv1alpha1.RateLimit{Requests: 1, Count: slipwayv1alpha1.RateLimitCountedByGateway}
	f := routes.Restrict(&table.Rule{}, &slipwayv1alpha1.GatewayPolicySettings{RateLimit: limit})
	if f == nil || !strings.Contains(f.Message, "rateLimit.count") {
		t.Errorf("the fault is %+v", f)
	}
}
