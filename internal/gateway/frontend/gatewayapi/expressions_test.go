package gatewayapi_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// expressive returns a route of a namespace with a match for each header expression.
func expressive(namespace string, expressions ...string) *gatewayv1.HTTPRoute {
	infra := gatewayv1.Namespace("infra")
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "expressive", UID: types.UID(namespace)}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: &infra, Name: "edge"}}
	for i := range 16 {
		route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.%s.test", i, namespace)))
	}
	rule := gatewayv1.HTTPRouteRule{}
	for _, expression := range expressions {
		rule.Matches = append(rule.Matches, gatewayv1.HTTPRouteMatch{Headers: []gatewayv1.HTTPHeaderMatch{
			{Type: new(gatewayv1.HeaderMatchRegularExpression), Name: "X-Version", Value: expression},
		}})
	}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{rule}
	return route
}

// A namespace whose expressions are too large is told so, and takes no room from others.
func TestTheExpressionsOfANamespaceAreBounded(t *testing.T) {
	var large []string
	for i := range 300 {
		large = append(large, fmt.Sprintf("(?:aaaaaaaaaa){99}x%d", i))
	}
	in := aGateway()
	in.HTTPRoutes = []*gatewayv1.HTTPRoute{expressive("greedy", large...), expressive("team", "v[0-9]+", "v[0-9]+-beta")}
	g := gatewayapi.Build(in)
	refused := map[string]bool{}
	for _, route := range g.Routes {
		c := meta.FindStatusCondition(route.Parents[0].Conditions, string(gatewayv1.RouteConditionAccepted))
		refused[route.Name.Namespace] = c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "there is no room")
	}
	if !refused["greedy"] || refused["team"] {
		t.Errorf("%v", refused)
	}
	_, problems := table.Compile(g.Table(nil))
	for _, p := range problems {
		if rule := g.Rules[p.Index]; rule.Fault == nil {
			t.Fatalf("the pods refuse more than the status tells: %s", p.Message)
		}
	}
}
