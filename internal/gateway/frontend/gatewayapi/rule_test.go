package gatewayapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// Metrics and the access log tell by the name whose rule it was, also where routes of two kinds have the same name.
func TestRulesOfRoutesWithTheSameNameHaveDifferentNames(t *testing.T) {
	of := metav1.ObjectMeta{Namespace: "team", Name: "shop"}
	parents := gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}}
	named := gatewayv1.SectionName("api")
	built := gatewayapi.Build(gatewayapi.Input{
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"},
			Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
		},
		HTTPRoutes: []*gatewayv1.HTTPRoute{{ObjectMeta: of, Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: parents, Rules: []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{{}}}, {Name: &named, Matches: []gatewayv1.HTTPRouteMatch{{}}}},
		}}},
		GRPCRoutes: []*gatewayv1.GRPCRoute{{ObjectMeta: of, Spec: gatewayv1.GRPCRouteSpec{CommonRouteSpec: parents, Rules: []gatewayv1.GRPCRouteRule{{}}}}},
	})
	var names []string
	for _, rule := range built.Rules {
		names = append(names, rule.Name)
	}
	if diff := cmp.Diff([]string{"httproute/team/shop/0", "httproute/team/shop/api", "grpcroute/team/shop/0"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
