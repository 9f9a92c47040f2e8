package gatewayapi_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// aSetting is a field of GatewayPolicySettings, and how a rule of the table shows that it is enforced.
type aSetting struct {
	// set is the field with a value, as YAML.
	set string
	// in reports whether a rule has it. grpc is that only gRPC comes to the rule.
	in func(rule *table.Rule, grpc bool) bool
	// protects is that it keeps something out, so that it has to hold for all that the policy is for.
	protects bool
}

// theSettings has every field of GatewayPolicySettings. A field with parts that are enforced in different places has several.
var theSettings = map[string][]aSetting{
	"clientAddresses": {{`{deny: [192.0.2.0/24]}`, func(r *table.Rule, _ bool) bool { return r.ClientAddresses != nil }, true}},
	"auth":            {{`{jwt: {issuer: id, jwksURL: "https://id.example.com/keys"}}`, func(r *table.Rule, _ bool) bool { return r.Auth != nil }, true}},
	"rateLimit":       {{`{requests: 5}`, func(r *table.Rule, _ bool) bool { return r.RateLimit != nil }, true}},
	"maxBodyBytes":    {{`5`, func(r *table.Rule, _ bool) bool { return r.MaxBodyBytes == 5 }, true}},
	"maintenance":     {{`{}`, func(r *table.Rule, _ bool) bool { return r.Maintenance != nil }, true}},
	"cors":            {{`{allowOrigins: ["https://a.example.com"]}`, func(r *table.Rule, _ bool) bool { return r.CORS != nil }, false}},
	"sessionAffinity": {
		{`{cookie: {name: session}}`, func(r *table.Rule, _ bool) bool { return r.Affinity != nil }, false},
		{`{none: {}}`, nil, false},
	},
	"compression": {
		{`{}`, func(r *table.Rule, grpc bool) bool { return r.Compression != nil && !grpc }, false},
		{`{algorithms: [Identity]}`, nil, false},
	},
	"cache": {
		{`{}`, func(r *table.Rule, grpc bool) bool { return r.Cache != nil && !grpc }, false},
		{`{mode: "Off"}`, nil, false},
	},
	"backends": {
		{`{maxConnections: 5}`, func(r *table.Rule, _ bool) bool { return r.BackendSettings != nil }, false},
		{`{healthCheck: {path: /}}`, func(r *table.Rule, _ bool) bool {
			return r.BackendSettings != nil && r.BackendSettings.HealthCheck != nil && r.Transport == model.TransportHTTP
		}, false},
	},
}

var theTargets = []slipwayv1alpha1.PolicyTargetReference{
	{Kind: "Gateway", Name: "edge"},
	{Kind: "Gateway", Name: "edge", SectionName: "http"},
	{Kind: "Gateway", Name: "edge", SectionName: "https"},
	{Kind: "Gateway", Name: "edge", SectionName: "passthrough"},
	{Kind: "Gateway", Name: "edge", SectionName: "terminate"},
	{Kind: "Gateway", Name: "edge", SectionName: "tcp"},
	{Kind: "Gateway", Name: "edge", SectionName: "udp"},
	{Kind: "ListenerSet", Name: "more"},
	{Kind: "ListenerSet", Name: "more", SectionName: "http"},
	{Kind: "ListenerSet", Name: "more", SectionName: "tcp"},
	{Kind: "ListenerSet", Name: "raw"},
	{Kind: "HTTPRoute", Name: "web"},
	{Kind: "HTTPRoute", Name: "web", SectionName: "main"},
	{Kind: "GRPCRoute", Name: "calls"},
	{Kind: "GRPCRoute", Name: "calls", SectionName: "main"},
}

// Every field of a policy, at every kind of listener and route: what is accepted is enforced, and what is not enforced is told.
func TestNothingIsAcceptedThatIsNotEnforced(t *testing.T) {
	fields := reflect.TypeFor[slipwayv1alpha1.GatewayPolicySettings]()
	cells := 0
	for i := range fields.NumField() {
		field := strings.Split(fields.Field(i).Tag.Get("json"), ",")[0]
		if len(theSettings[field]) == 0 {
			t.Errorf("the table has no value for the setting %s", field)
		}
		for _, setting := range theSettings[field] {
			for _, target := range theTargets {
				for _, stanza := range []string{"defaults", "overrides"} {
					cells++
					t.Run(fmt.Sprintf("%s/%s %s/%s %s %s", stanza, field, setting.set, target.Kind, target.Name, target.SectionName), func(t *testing.T) {
						checkEnforced(t, stanza, field, setting, target)
					})
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

func checkEnforced(t *testing.T, stanza, field string, setting aSetting, target slipwayv1alpha1.PolicyTargetReference) {
	t.Helper()
	policy := attachedPolicy("infra", "asks", target, nil, nil)
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{%s: {%s: %s}}", stanza, field, setting.set), &policy.Spec); err != nil {
		t.Fatal(err)
	}
	policy.Spec.TargetRefs = []slipwayv1alpha1.PolicyTargetReference{target}
	in := read(t, "testdata/enforce/edge.yaml")
	in.GatewayPolicies = []*slipwayv1alpha1.GatewayPolicy{policy}
	in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(types.NamespacedName) (map[string][]byte, bool) { return nil, false })
	g := gatewayapi.Build(in)
	if len(g.GatewayPolicies) != 1 {
		t.Fatalf("the policy matters for nothing")
	}
	enforced, lacking := countEnforced(g, setting, target)
	if enforced+lacking == 0 {
		t.Fatal("no rule is covered")
	}
	told := g.GatewayPolicies[0].Conditions[0]
	accepted := told.Status == metav1.ConditionTrue
	holds := lacking == 0 || !setting.protects && enforced > 0
	if setting.in == nil { // it only takes away what others set
		holds = true
	}
	if accepted != holds || !accepted && told.Reason != slipwayv1alpha1.ReasonPolicyNotEnforced {
		t.Errorf("it holds for %d rules and not for %d, and Accepted is %s (%s: %s)", enforced, lacking, told.Status, told.Reason, told.Message)
	}
	if !accepted && (!strings.Contains(told.Message, "spec."+stanza+"."+field) || !strings.Contains(told.Message, target.Name)) {
		t.Errorf("the message names neither field nor target: %s", told.Message)
	}
}

// countEnforced counts the rules at the listeners and routes of a target that have the setting, or let nobody in, and those that
// do not.
func countEnforced(g *gatewayapi.Graph, setting aSetting, target slipwayv1alpha1.PolicyTargetReference) (enforced, lacking int) {
	for i := range g.Rules {
		rule := &g.Rules[i]
		grpc := strings.HasPrefix(rule.Name, "grpcroute/")
		for _, at := range rule.Listeners {
			if !covers(target, g.Listeners[at], rule.Name) || grpc && target.Kind != "GRPCRoute" {
				continue
			}
			if setting.in == nil || rule.Fault != nil || setting.in(&rule.Rule, grpc) {
				enforced++
			} else {
				lacking++
			}
		}
	}
	return enforced, lacking
}

func covers(target slipwayv1alpha1.PolicyTargetReference, l *gatewayapi.Listener, rule string) bool {
	section := target.SectionName == "" || target.SectionName == string(l.Name)
	switch target.Kind {
	case "Gateway":
		return target.SectionName == "" || l.Set == nil && section
	case "ListenerSet":
		return l.Set != nil && l.Set.Name.Name == target.Name && section
	default:
		return strings.HasPrefix(rule, strings.ToLower(target.Kind)+"/infra/"+target.Name+"/")
	}
}

// A policy of which nothing is used is not live, whatever the reason.
func TestAPolicyOfWhichNothingHoldsIsFutile(t *testing.T) {
	limit, body := &slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{Requests: 5}}, int64(5)
	more := &slipwayv1alpha1.GatewayPolicySettings{RateLimit: limit.RateLimit, MaxBodyBytes: &body}
	for name, test := range map[string]struct {
		targets []slipwayv1alpha1.PolicyTargetReference
		asks    *slipwayv1alpha1.GatewayPolicySettings
		reason  string
		futile  bool
	}{
		"a listener that there is not":              {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "Gateway", Name: "edge", SectionName: "none"}}, limit, slipwayv1alpha1.ReasonPolicyTargetNotFound, true},
		"a rule that there is not":                  {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "web", SectionName: "none"}}, limit, slipwayv1alpha1.ReasonPolicyTargetNotFound, true},
		"a listener of a set that there is not":     {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "ListenerSet", Name: "more", SectionName: "none"}}, limit, slipwayv1alpha1.ReasonPolicyTargetNotFound, true},
		"one that there is, and one that is not":    {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "Gateway", Name: "edge", SectionName: "none"}, {Kind: "GRPCRoute", Name: "calls"}}, limit, slipwayv1alpha1.ReasonPolicyTargetNotFound, false},
		"an older policy has all of it":             {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "web"}}, limit, slipwayv1alpha1.ReasonPolicyConflicted, true},
		"an older policy has some of it":            {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "web"}}, more, slipwayv1alpha1.ReasonPolicyConflicted, false},
		"an older policy has it at one of two only": {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "web"}, {Kind: "GRPCRoute", Name: "calls"}}, limit, slipwayv1alpha1.ReasonPolicyConflicted, false},
		"a listener for TCP":                        {[]slipwayv1alpha1.PolicyTargetReference{{Kind: "Gateway", Name: "edge", SectionName: "tcp"}}, more, slipwayv1alpha1.ReasonPolicyNotEnforced, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := read(t, "testdata/enforce/edge.yaml")
			policy := attachedPolicy("infra", "judged", test.targets[0], test.asks, nil)
			policy.Spec.TargetRefs = test.targets
			in.GatewayPolicies = []*slipwayv1alpha1.GatewayPolicy{attachedPolicy("infra", "a", slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "web"}, limit, nil), policy}
			for _, judged := range gatewayapi.Build(in).GatewayPolicies {
				want := test.futile && judged.Name.Name == "judged"
				if judged.Futile != want {
					t.Errorf("%s: futile is %v", judged.Name, judged.Futile)
				}
				if told := judged.Conditions[0]; judged.Name.Name == "judged" && told.Reason != test.reason {
					t.Errorf("it is told %s: %s", told.Reason, told.Message)
				}
			}
		})
	}
}
