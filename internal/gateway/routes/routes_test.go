package routes_test

import (
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// The table knows no API. Users read its reasons in the status of an APIGateway.
func TestTheReasonsOfTheTableAreThoseOfTheAPI(t *testing.T) {
	for ours, ofAPI := range map[string]string{
		table.ReasonInvalid:             slipwayv1alpha1.ReasonInvalid,
		table.ReasonInvalidRoute:        slipwayv1alpha1.ReasonInvalidRoute,
		table.ReasonInvalidRegex:        slipwayv1alpha1.ReasonInvalidRegex,
		table.ReasonBackendNotFound:     slipwayv1alpha1.ReasonBackendNotFound,
		table.ReasonPortNotFound:        slipwayv1alpha1.ReasonPortNotFound,
		table.ReasonUnsupportedService:  slipwayv1alpha1.ReasonUnsupportedService,
		table.ReasonUnsupportedProtocol: slipwayv1alpha1.ReasonUnsupportedProtocol,
		table.ReasonNoEndpoints:         slipwayv1alpha1.ReasonNoEndpoints,
	} {
		if ours != ofAPI {
			t.Errorf("%q is %q in the API", ours, ofAPI)
		}
	}
}
