package gatewayapi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// reached are the backends of the rules of a route, as the data plane keeps them: what has another ID has other connections,
// limits and checks.
func reached(in gatewayapi.Input, route string) []model.Backend {
	g := gatewayapi.Build(in)
	compiled, _ := table.Compile(g.Table(map[model.ServiceName]model.Service{
		{Namespace: "team", Name: "app"}: {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}},
	}))
	var all []model.Backend
	for _, r := range compiled.Routes {
		if !strings.HasPrefix(r.Name, "httproute/team/"+route+"/") {
			continue
		}
		for _, b := range r.Backends {
			one := *b.Backend
			one.Index = 0 // of the table
			all = append(all, one)
		}
	}
	return all
}

// withNeighbour adds another route to the same Service. Its owner writes no policy.
func withNeighbour(in gatewayapi.Input) gatewayapi.Input {
	infra, port := gatewayv1.Namespace("infra"), gatewayv1.PortNumber(80)
	other := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "neighbour", UID: "neighbour"}}
	other.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: &infra, Name: "edge"}}
	other.Spec.Hostnames = []gatewayv1.Hostname{"neighbour.example.com"}
	other.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}}}}}}
	in.HTTPRoutes = append(in.HTTPRoutes, other)
	return in
}

// Whatever policies of one route say, another route to the same Service has the limits, checks and connections that it had.
func TestNoPolicyOfARouteChangesTheBackendsOfAnother(t *testing.T) {
	edge := slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}
	own, differ := []slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "shop"}, {Kind: "HTTPRoute", Name: "shop", SectionName: "one"}}, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		base := attachedPolicy("infra", "base", edge, &slipwayv1alpha1.GatewayPolicySettings{Backends: someBackends(r)}, nil)
		before := reached(withNeighbour(aGateway(base)), "neighbour")
		policies := []*slipwayv1alpha1.GatewayPolicy{base}
		for i := range 1 + r.IntN(3) {
			policies = append(policies, attachedPolicy("team", string(rune('a'+i)), own[r.IntN(2)], someSettings(r), someSettings(r)))
		}
		in := withNeighbour(aGateway(policies...))
		if diff := cmp.Diff(before, reached(in, "neighbour")); diff != "" || len(before) == 0 {
			t.Fatalf("seed %d: the neighbour's backends changed (-before +after):\n%s", seed, diff)
		}
		for _, b := range reached(in, "shop") {
			if b.ID != before[0].ID {
				differ++
			}
		}
	}
	if differ < 100 {
		t.Errorf("%d backends differ: the policies are too strange to show anything", differ)
	}
}

// someBackends are random settings, which are valid.
func someBackends(r *rand.Rand) *slipwayv1alpha1.BackendSettings {
	connections := 1 + r.Int32N(100)
	s := &slipwayv1alpha1.BackendSettings{MaxConnections: &connections}
	if r.IntN(2) == 0 {
		s.HealthCheck = &slipwayv1alpha1.EndpointCheck{Path: "/healthz"}
	}
	return s
}

// A changed policy keeps the group, so that open connections and what is known of health stay.
func TestAChangedPolicyKeepsItsBackends(t *testing.T) {
	at := func(most int32) []model.Backend {
		return reached(aGateway(attachedPolicy("team", "bounds", slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop"},
			&slipwayv1alpha1.GatewayPolicySettings{Backends: &slipwayv1alpha1.BackendSettings{MaxConnections: &most}}, nil)), "shop")
	}
	before, after := at(1), at(2)
	if before[0].ID != "team/app:80//team/bounds/defaults" || after[0].ID != before[0].ID || before[0].Limits.Connections != 1 || after[0].Limits.Connections != 2 {
		t.Errorf("before %+v, after %+v", before[0], after[0])
	}
}

// Who writes policies of routes cannot multiply what overrides of the Gateway bound.
func TestAnOverrideBoundsAllRulesTogether(t *testing.T) {
	one := int32(1)
	bound := &slipwayv1alpha1.GatewayPolicySettings{Backends: &slipwayv1alpha1.BackendSettings{MaxConnections: &one}}
	policies := []*slipwayv1alpha1.GatewayPolicy{attachedPolicy("infra", "base", slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}, nil, bound)}
	for _, section := range []string{"one", "two"} {
		more := int32(1000)
		settings := &slipwayv1alpha1.GatewayPolicySettings{Backends: &slipwayv1alpha1.BackendSettings{MaxConnections: &more}}
		policies = append(policies, attachedPolicy("team", section, slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop", SectionName: section}, settings, settings))
	}
	in := withNeighbour(aGateway(policies...))
	for _, route := range []string{"shop", "neighbour"} {
		all := reached(in, route)
		for _, b := range all {
			if b.ID != "team/app:80//infra/base/overrides" || b.Limits.Connections != 1 {
				t.Errorf("%s reaches %+v", route, b)
			}
		}
		if len(all) == 0 {
			t.Errorf("%s reaches nothing", route)
		}
	}
}

// The pods that check belong to the owner of the Gateway. So a namespace cannot have them check without end.
func TestANamespaceHasABoundForItsChecks(t *testing.T) {
	settings := &slipwayv1alpha1.GatewayPolicySettings{Backends: &slipwayv1alpha1.BackendSettings{HealthCheck: &slipwayv1alpha1.EndpointCheck{Path: "/healthz"}}}
	for namespace, checked := range map[string]int{"team": 128, "infra": 130} {
		in := aGateway()
		shop := in.HTTPRoutes[0]
		in.HTTPRoutes = nil
		for n := range 130 {
			name := fmt.Sprintf("p%03d", n)
			route := shop.DeepCopy()
			route.Name, route.Namespace, route.UID = name, namespace, types.UID(name)
			in.HTTPRoutes = append(in.HTTPRoutes, route)
			in.GatewayPolicies = append(in.GatewayPolicies, attachedPolicy(namespace, name, slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: name}, settings, nil))
		}
		in.Services[types.NamespacedName{Namespace: namespace, Name: "app"}] = in.Services[types.NamespacedName{Namespace: "team", Name: "app"}]
		g := gatewayapi.Build(in)
		got, told := map[string]bool{}, 0
		for i := range g.Rules {
			if own := g.Rules[i].BackendSettings; own.HealthCheck != nil {
				got[own.Group] = true
			}
		}
		for _, p := range g.GatewayPolicies {
			if c := p.Conditions[0]; c.Status == metav1.ConditionFalse && c.Reason == slipwayv1alpha1.ReasonPolicyTooManyHealthChecks {
				told++
			}
		}
		if len(got) != checked || told != 130-checked {
			t.Errorf("%s: %d policies are kept, and %d are told that they are not, want %d of 130", namespace, len(got), told, checked)
		}
	}
}
