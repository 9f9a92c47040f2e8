package gatewayapi_test

import (
	"slices"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// Who knows that pages hold a secret can keep them from being compressed, whatever the owner of the Gateway wants. Nobody can
// have compressed what the owner does not want compressed.
func TestAMoreSpecificIdentityKeepsResponsesUncompressed(t *testing.T) {
	compresses := &slipwayv1alpha1.GatewayPolicySettings{Compression: &slipwayv1alpha1.Compression{}}
	none := &slipwayv1alpha1.GatewayPolicySettings{Compression: &slipwayv1alpha1.Compression{Algorithms: []slipwayv1alpha1.CompressionAlgorithm{slipwayv1alpha1.CompressionIdentity}}}
	testSwitchedOff(t, compresses, none, func(rule *gatewayapi.Rule) bool { return rule.Compression != nil && len(rule.Compression.Codings) == 0 })
}

// Who knows that pages depend on what no cache compares can keep them from being stored, in the same way.
func TestAMoreSpecificOffKeepsResponsesFromBeingStored(t *testing.T) {
	stores := &slipwayv1alpha1.GatewayPolicySettings{Cache: &slipwayv1alpha1.Cache{}}
	off := &slipwayv1alpha1.GatewayPolicySettings{Cache: &slipwayv1alpha1.Cache{Mode: slipwayv1alpha1.CacheOff}}
	testSwitchedOff(t, stores, off, func(rule *gatewayapi.Rule) bool { return rule.Cache != nil && !rule.Cache.Off })
}

// testSwitchedOff tests which of two settings holds for rule one. has tells whether it is the one that is on.
func testSwitchedOff(t *testing.T, on, off *slipwayv1alpha1.GatewayPolicySettings, has func(*gatewayapi.Rule) bool) {
	t.Helper()
	type settings = slipwayv1alpha1.GatewayPolicySettings
	type policy struct {
		target              string
		defaults, overrides *settings
	}
	for name, tc := range map[string]struct {
		policies []policy
		want     bool     // for rule one it is on
		told     []string // the policies that are told that they are replaced somewhere
	}{
		"override of the Gateway":                     {[]policy{{"Gateway", nil, on}}, true, nil},
		"and a default of the route without":          {[]policy{{"Gateway", nil, on}, {"HTTPRoute", off, nil}}, false, nil},
		"and an override of the route without":        {[]policy{{"Gateway", nil, on}, {"HTTPRoute", nil, off}}, false, nil},
		"and a default of the rule without":           {[]policy{{"Gateway", nil, on}, {"HTTPRoute", on, nil}, {"rule", off, nil}}, false, []string{"HTTPRoute"}},
		"and a default of the rule that has it":       {[]policy{{"Gateway", nil, on}, {"HTTPRoute", off, nil}, {"rule", on, nil}}, true, []string{"HTTPRoute", "rule"}},
		"and a route's that the rule does not undo":   {[]policy{{"Gateway", nil, on}, {"HTTPRoute", nil, on}, {"rule", off, nil}}, false, []string{"HTTPRoute"}},
		"default beside it in the same policy":        {[]policy{{"Gateway", off, on}}, true, nil},
		"override without, and a route that would":    {[]policy{{"Gateway", nil, off}, {"HTTPRoute", on, on}}, false, []string{"HTTPRoute"}},
		"default without, and an override of a route": {[]policy{{"Gateway", off, nil}, {"HTTPRoute", nil, on}}, true, []string{"Gateway"}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []*slipwayv1alpha1.GatewayPolicy
			for _, p := range tc.policies {
				at, namespace := slipwayv1alpha1.PolicyTargetReference{Kind: p.target, Name: "shop"}, "team"
				switch p.target {
				case "Gateway":
					at.Name, namespace = "edge", "infra"
				case "rule":
					at.Kind, at.SectionName = "HTTPRoute", "one"
				}
				list = append(list, attachedPolicy(namespace, p.target, at, p.defaults, p.overrides))
			}
			g := gatewayapi.Build(aGateway(list...))
			for _, rule := range g.Rules {
				if rule.Place != 0 {
					continue
				}
				if got := has(&rule); got != tc.want {
					t.Errorf("it is on: %v, want %v", got, tc.want)
				}
			}
			for _, p := range g.GatewayPolicies {
				if got, want := p.Conditions[0].Message != "the policy is used", slices.Contains(tc.told, p.Name.Name); got != want {
					t.Errorf("%s says %q", p.Name, p.Conditions[0].Message)
				}
			}
		})
	}
}
