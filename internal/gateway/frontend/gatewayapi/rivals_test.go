package gatewayapi_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// A route is told which of its matches another one has that comes first.
func TestARouteIsToldWhoHasItsRequests(t *testing.T) {
	const first = `{hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /shop}}, {path: {type: Exact, value: /cart}, method: GET}]}]}`
	one := func(matches string) string {
		return `{hostnames: [a.example.com], rules: [{matches: ` + matches + `}]}`
	}
	for name, test := range map[string]struct {
		spec string
		want gatewayapi.Rivals
	}{
		"the same":                       {first, gatewayapi.Rivals{First: `rules[0].matches[0]: the match is that of HTTPRoute "first"`, All: true}},
		"one of two":                     {one(`[{path: {type: PathPrefix, value: /other}}, {path: {type: PathPrefix, value: /shop}}]`), gatewayapi.Rivals{First: `rules[0].matches[1]: the match is that of HTTPRoute "first"`}},
		"with a slash at the end":        {one(`[{path: {type: PathPrefix, value: /shop/}}]`), gatewayapi.Rivals{First: `rules[0]: the match is that of HTTPRoute "first"`, All: true}},
		"another type of path":           {one(`[{path: {type: Exact, value: /shop}}]`), gatewayapi.Rivals{}},
		"another method":                 {one(`[{path: {type: Exact, value: /cart}, method: POST}]`), gatewayapi.Rivals{}},
		"a header more":                  {one(`[{path: {type: PathPrefix, value: /shop}, headers: [{name: x-beta, value: "1"}]}]`), gatewayapi.Rivals{}},
		"the same headers otherwise":     {one(`[{path: {type: PathPrefix, value: /h}, headers: [{name: X-B, value: "1"}, {name: x-a, value: "2"}], queryParams: [{name: q, value: "1"}]}]`), gatewayapi.Rivals{First: `rules[0]: the match is that of HTTPRoute "headers"`, All: true}},
		"another hostname":               {`{hostnames: [b.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /shop}}]}]}`, gatewayapi.Rivals{}},
		"a hostname more":                {`{hostnames: [a.example.com, b.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /shop}}]}]}`, gatewayapi.Rivals{First: `rules[0]: the match is that of HTTPRoute "first"`}},
		"its own match twice":            {one(`[{path: {type: PathPrefix, value: /own}}, {path: {type: PathPrefix, value: /own}}]`), gatewayapi.Rivals{}},
		"of a route elsewhere":           {one(`[{path: {type: PathPrefix, value: /foreign}}]`), gatewayapi.Rivals{First: `rules[0]: the match is that of a route of another namespace`, All: true}},
		"what a GRPCRoute puts before":   {one(`[{path: {type: Exact, value: /pets.Shop/Buy}}]`), gatewayapi.Rivals{First: `rules[0]: the match is that of GRPCRoute "calls"`, All: true}},
		"attached to another listener":   {`{parentRefs: [{name: edge, sectionName: more}], hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /alone}}]}]}`, gatewayapi.Rivals{}},
		"a rule that cannot be served":   {`{hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /shop}}], filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: c}}]}]}`, gatewayapi.Rivals{First: `rules[0]: the match is that of HTTPRoute "first"`, All: true}},
		"a rule before, and one of them": {`{hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /x}}]}, {matches: [{path: {type: PathPrefix, value: /shop}}]}]}`, gatewayapi.Rivals{First: `rules[1]: the match is that of HTTPRoute "first"`}},
	} {
		t.Run(name, func(t *testing.T) {
			in := rivals(t)
			route := rival(t, "team", "judged", 3, test.spec)
			in.HTTPRoutes = append([]*gatewayv1.HTTPRoute{
				route, rival(t, "team", "first", 1, first), rival(t, "others", "first", 1, one(`[{path: {type: PathPrefix, value: /foreign}}]`)),
				rival(t, "team", "headers", 1, one(`[{path: {type: PathPrefix, value: /h}, headers: [{name: X-A, value: "2"}, {name: x-b, value: "1"}], queryParams: [{name: q, value: "1"}]}]`)),
				rival(t, "team", "web", 1, `{parentRefs: [{name: edge, sectionName: web}], hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /alone}}]}]}`),
			}, in.HTTPRoutes...)
			g := gatewayapi.Build(in)
			g.NoteRivals()
			for _, judged := range g.Routes {
				if judged.Name.Name == "judged" {
					if diff := cmp.Diff(test.want, judged.Parents[0].Rivals); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				} else if rivals := judged.Parents[0].Rivals; rivals != (gatewayapi.Rivals{}) {
					t.Errorf("%s %s, which comes first, has lost: %+v", judged.Kind, judged.Name, rivals)
				}
			}
		})
	}
}

// rivals is a Gateway with two listeners, and a GRPCRoute that is younger than every other route.
func rivals(t *testing.T) gatewayapi.Input {
	t.Helper()
	all := gatewayv1.NamespacesFromAll
	open := &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}
	calls := &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "calls", CreationTimestamp: at(9)}}
	if err := yaml.UnmarshalStrict([]byte(`{parentRefs: [{name: edge, namespace: team}], hostnames: [a.example.com], rules: [{matches: [{method: {service: pets.Shop, method: Buy}}]}]}`), &calls.Spec); err != nil {
		t.Fatal(err)
	}
	return gatewayapi.Input{
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"},
			Spec: gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{
				{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: open}, {Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: open},
			}},
		},
		GRPCRoutes: []*gatewayv1.GRPCRoute{calls},
	}
}

func at(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }

func rival(t *testing.T, namespace, name string, created int64, spec string) *gatewayv1.HTTPRoute {
	t.Helper()
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: at(created)}}
	if err := yaml.UnmarshalStrict([]byte(spec), &route.Spec); err != nil {
		t.Fatal(err)
	}
	if route.Spec.ParentRefs == nil {
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: new(gatewayv1.Namespace("team")), Name: "edge"}}
	}
	return route
}
