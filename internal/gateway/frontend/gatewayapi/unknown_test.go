package gatewayapi_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// twoRules is a Gateway and a route with two rules, of which the first has two matches.
func twoRules() gatewayapi.Input {
	port := int32(80)
	path := func(text string) gatewayv1.HTTPRouteMatch {
		return gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Value: &text}}
	}
	backends := []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}}}}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "route", UID: "route"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
	route.Spec.Hostnames = []gatewayv1.Hostname{"a.example.com"}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{
		{Matches: []gatewayv1.HTTPRouteMatch{path("/a"), path("/b")}, BackendRefs: backends},
		{Matches: []gatewayv1.HTTPRouteMatch{path("/c")}, BackendRefs: backends},
	}
	return gatewayapi.Input{
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "gateway"},
			Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
		},
		HTTPRoutes: []*gatewayv1.HTTPRoute{route},
		Services:   map[types.NamespacedName]gatewayapi.Service{{Namespace: "shop", Name: "app"}: {Ports: map[int32]gatewayapi.Port{80: {}}}},
	}
}

// Without its field, a rule could let more requests in.
func TestWhatHasAnUnknownFieldIsRefused(t *testing.T) {
	const all = "/a /b /c"
	tests := map[string]struct {
		of     types.UID
		field  string
		served string // paths that are served as they are written
		fault  string // paths that answer 500
	}{
		"none":                {"route", "", all, ""},
		"of a rule":           {"route", "rules[0].audience", "/c", "/a /b"},
		"of a filter":         {"route", "rules[1].filters[0].urlRewrite.query", "/a /b", "/c"},
		"of a match":          {"route", "rules[0].matches[1].cookies", "/c", "/a"},
		"of the parentRef":    {"route", "parentRefs[0].weight", "", ""},
		"of another parent":   {"route", "parentRefs[1].weight", all, ""},
		"of the route":        {"route", "audience", "", all},
		"of no rule":          {"route", "rules[7].audience", "", all},
		"of a listener":       {"gateway", "listeners[0].maxConnections", "", ""},
		"of another listener": {"gateway", "listeners[1].maxConnections", all, ""},
		"of another object":   {"other", "rules[0].audience", all, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := twoRules()
			if test.field != "" {
				in.Unknown = map[types.UID][]string{test.of: {test.field}}
			}
			g := gatewayapi.Build(in)
			var served, refused []string
			for _, rule := range g.Rules {
				switch {
				case rule.Fault == nil:
					served = append(served, rule.Path)
				case rule.Fault.Reason == string(gatewayv1.RouteReasonUnsupportedValue) && strings.Contains(rule.Fault.Message, test.field):
					refused = append(refused, rule.Path)
				default:
					t.Errorf("got fault %+v", rule.Fault)
				}
			}
			if got := strings.Join(served, " "); got != test.served {
				t.Errorf("serves %q, want %q", got, test.served)
			}
			if got := strings.Join(refused, " "); got != test.fault {
				t.Errorf("refuses %q, want %q", got, test.fault)
			}
		})
	}
}

// A listener that cannot be served must not take the place of one that can.
func TestAListenerThatIsNotValidLeavesItsPlaceToAValidOne(t *testing.T) {
	in := twoRules()
	in.Gateway.Spec.Listeners = []gatewayv1.Listener{
		{Name: "other", Port: 80, Protocol: "example.com/other"},
		{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
	}
	compiled, problems := table.Compile(gatewayapi.Build(in).Table(map[model.ServiceName]model.Service{
		{Namespace: "shop", Name: "app"}: {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"a:1"}}}},
	}))
	if len(problems) > 0 {
		t.Errorf("got problems %+v", problems)
	}
	if compiled.Match(&table.Request{Method: "GET", Port: 80, Host: "a.example.com", Path: "/a"}) == nil {
		t.Error("no route for the listener that is valid")
	}
}

// A listener that let everybody in would be worse than none.
func TestClientsWhoseCertificatesAreToBeCheckedAreNotLetIn(t *testing.T) {
	checked := gatewayv1.TLSConfig{Validation: &gatewayv1.FrontendTLSValidation{}}
	tests := map[string]struct {
		frontend gatewayv1.FrontendTLSConfig
		valid    bool
	}{
		"nothing":      {gatewayv1.FrontendTLSConfig{}, true},
		"everywhere":   {gatewayv1.FrontendTLSConfig{Default: checked}, false},
		"on this port": {gatewayv1.FrontendTLSConfig{PerPort: []gatewayv1.TLSPortConfig{{Port: 443, TLS: checked}}}, false},
		"elsewhere":    {gatewayv1.FrontendTLSConfig{PerPort: []gatewayv1.TLSPortConfig{{Port: 444, TLS: checked}}}, true},
		"not here":     {gatewayv1.FrontendTLSConfig{Default: checked, PerPort: []gatewayv1.TLSPortConfig{{Port: 443}}}, true},
	}
	for name, test := range tests {
		in := twoRules()
		in.Gateway.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &test.frontend}
		in.Gateway.Spec.Listeners = []gatewayv1.Listener{{
			Name: "https", Port: 443, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "certificate"}}},
		}}
		in.Secrets = map[types.NamespacedName]gatewayapi.Secret{{Namespace: "shop", Name: "certificate"}: {}}
		if got := gatewayapi.Build(in).Listeners[0].Valid; got != test.valid {
			t.Errorf("%s: served %t, want %t", name, got, test.valid)
		}
	}
}
