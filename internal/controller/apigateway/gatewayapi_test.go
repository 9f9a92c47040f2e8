package apigateway

import (
	"errors"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// A pass that read before the Gateway API was found takes its Gateway for missing: it
// must neither make the HTTPRoute nor speak of it.
func TestAPassFromBeforeTheGatewayAPIWasFoundIsRepeated(t *testing.T) {
	s := runningScope()
	s.gateway.Spec.Expose = &slipwayv1alpha1.Expose{
		Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}},
	}
	api := &gatewayAPI{}
	if err := api.load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	api.running.Store(&apply.Applier{})
	err := api.apply(t.Context(), s)
	if policy := (&outcome.Error{}); !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
		t.Errorf("%v, want a quiet repetition", err)
	}
}
