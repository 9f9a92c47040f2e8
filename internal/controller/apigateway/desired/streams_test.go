package desired

import (
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
)

func TestNoStreamHasAPortOfTheGatewayItself(t *testing.T) {
	for _, port := range []int32{AdminPort, httpPort, httpsPort, serviceHTTPPort, serviceHTTPSPort, peers.Port} {
		fault := apigateway.StreamFaults([]slipwayv1alpha1.Stream{{Name: "a", Port: port}})[0]
		if fault == nil || fault.Reason != slipwayv1alpha1.ReasonPortConflict {
			t.Errorf("port %d: %v", port, fault)
		}
	}
}
