package apigateway_test

import (
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
)

// A count that is not known may restrict more than those that are, so its route serves nothing.
func TestWhoCountsIsKnownOrTheRouteIsRefused(t *testing.T) {
	for count, want := range map[slipwayv1alpha1.RateLimitCount]struct{ shared, refused bool }{
		"":        {false, false},
		"Replica": {false, false},
		"Gateway": {true, false},
		"Cluster": {false, true},
	} {
		compiled, problems := apigateway.Compile(apigateway.Input{Routes: []slipwayv1alpha1.Route{{
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
