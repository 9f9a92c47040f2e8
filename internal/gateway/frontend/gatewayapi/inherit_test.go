package gatewayapi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// aGateway has a route of another namespace with two rules on two listeners.
func aGateway(policies ...*slipwayv1alpha1.GatewayPolicy) gatewayapi.Input {
	all, port := gatewayv1.NamespacesFromAll, gatewayv1.PortNumber(80)
	allowed := &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}
	infra, one, two := gatewayv1.Namespace("infra"), gatewayv1.SectionName("one"), gatewayv1.SectionName("two")
	app := []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}}}}
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "shop"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: &infra, Name: "edge"}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{Name: &one, BackendRefs: app}, {Name: &two, BackendRefs: app}}
	in := gatewayapi.Input{
		Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}, Spec: gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{
			{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: allowed},
			{Name: "admin", Port: 8080, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: allowed},
		}}},
		HTTPRoutes:      []*gatewayv1.HTTPRoute{route},
		Services:        map[types.NamespacedName]gatewayapi.Service{{Namespace: "team", Name: "app"}: {Ports: map[int32]gatewayapi.Port{80: {}}}},
		GatewayPolicies: policies, Unknown: map[types.UID][]string{},
	}
	in.Authentication = gatewayapi.Authenticate(policies, func(name types.NamespacedName) (map[string][]byte, bool) {
		if name.Name == "login" {
			return loginSecret(name)
		}
		return nil, false
	})
	return in
}

func attachedPolicy(namespace, name string, target slipwayv1alpha1.PolicyTargetReference, defaults, overrides *slipwayv1alpha1.GatewayPolicySettings) *slipwayv1alpha1.GatewayPolicy {
	return &slipwayv1alpha1.GatewayPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)},
		Spec:       slipwayv1alpha1.GatewayPolicySpec{TargetRefs: []slipwayv1alpha1.PolicyTargetReference{target}, Defaults: defaults, Overrides: overrides},
	}
}

// someSettings are random ones. Some of them cannot be used.
func someSettings(r *rand.Rand) *slipwayv1alpha1.GatewayPolicySettings {
	s := &slipwayv1alpha1.GatewayPolicySettings{}
	if r.IntN(2) == 0 {
		s.Auth = &slipwayv1alpha1.Auth{JWT: &slipwayv1alpha1.JWTAuth{Issuer: fmt.Sprint("issuer", r.IntN(3)), JWKSURL: "https://id.example.com/keys"}}
	}
	if r.IntN(8) == 0 {
		s.Auth = &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "missing"}}}
	}
	if r.IntN(8) == 0 {
		s.Auth = logInSettings(func(in *slipwayv1alpha1.OIDCAuth) { in.ClientID = fmt.Sprint("shop", r.IntN(2)) }).Auth
	}
	if r.IntN(8) == 0 { // it would be a Service beside the Gateway
		s.Auth = &slipwayv1alpha1.Auth{External: &slipwayv1alpha1.ExternalAuth{BackendService: slipwayv1alpha1.BackendService{Name: "app", Port: 80}}}
	}
	if r.IntN(2) == 0 {
		s.RateLimit = &slipwayv1alpha1.RateLimit{Requests: r.Int32N(1000), Period: "1s"} // 0 is none
		if r.IntN(2) == 0 {
			s.RateLimit.Count = slipwayv1alpha1.RateLimitCountedByGateway
		}
	}
	if r.IntN(2) == 0 {
		s.ClientAddresses = &slipwayv1alpha1.ClientAddresses{Deny: []slipwayv1alpha1.AddressRange{slipwayv1alpha1.AddressRange(fmt.Sprintf("10.%d.0.0/16", r.IntN(3)))}}
	}
	if r.IntN(2) == 0 {
		s.CORS = &slipwayv1alpha1.CORS{AllowOrigins: []slipwayv1alpha1.Origin{slipwayv1alpha1.Origin(fmt.Sprintf("https://%d.example.com", r.IntN(3)))}}
	}
	if r.IntN(2) == 0 {
		size := r.Int64N(1000)
		s.MaxBodyBytes = &size
	}
	if r.IntN(2) == 0 {
		s.Backends = someBackends(r)
	}
	return s
}

// allows tells whether a rule lets in what some overrides refuse: requests with other credentials or from other addresses, more of
// them, larger bodies, or pages of other origins.
func allows(rule table.Rule, refuse *slipwayv1alpha1.GatewayPolicySettings) string {
	switch {
	case rule.Fault != nil:
		return ""
	case rule.Auth != nil && rule.Auth.External != nil && !strings.HasPrefix(rule.Auth.ID, rule.Auth.External.Ref.Namespace+" "):
		return "who a Service of another namespace lets in"
	case refuse.Auth != nil && (rule.Auth == nil || rule.Auth.ID != gatewayapi.AuthID("infra", refuse.Auth)):
		return "other credentials"
	case refuse.RateLimit != nil && (rule.RateLimit == nil || rule.RateLimit.Requests != int64(refuse.RateLimit.Requests)):
		return "more requests"
	case refuse.RateLimit != nil && rule.RateLimit.Shared != (refuse.RateLimit.Count == slipwayv1alpha1.RateLimitCountedByGateway):
		return "as many requests by each replica"
	case refuse.ClientAddresses != nil && (rule.ClientAddresses == nil || rule.ClientAddresses.Deny[0] != string(refuse.ClientAddresses.Deny[0])):
		return "other addresses"
	case refuse.MaxBodyBytes != nil && (rule.MaxBodyBytes == 0 || rule.MaxBodyBytes > *refuse.MaxBodyBytes):
		return "a larger body"
	case refuse.CORS != nil && (rule.CORS == nil || rule.CORS.AllowOrigins[0] != string(refuse.CORS.AllowOrigins[0])):
		return "another origin"
	case refuse.Backends != nil && (rule.BackendSettings == nil || rule.BackendSettings.Group != "infra/base/overrides" || rule.BackendSettings.Limits.Connections != int(*refuse.Backends.MaxConnections)):
		return "more connections"
	default:
		return ""
	}
}

// Whatever the owners of routes write, and in whatever order of age, what the overrides of the Gateway refuse is refused.
func TestNoPolicyOfARouteLetsInWhatOverridesOfTheGatewayRefuse(t *testing.T) {
	targets := []slipwayv1alpha1.PolicyTargetReference{{Kind: "HTTPRoute", Name: "shop"}, {Kind: "HTTPRoute", Name: "shop", SectionName: "one"}, {Kind: "Gateway", Name: "edge"}}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		refuse := someSettings(r)
		of := slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}
		if r.IntN(2) == 0 {
			of.SectionName = "admin"
		}
		policies := []*slipwayv1alpha1.GatewayPolicy{attachedPolicy("infra", "base", of, nil, refuse)}
		for i := range r.IntN(4) {
			policies = append(policies, attachedPolicy("team", fmt.Sprint(i), targets[r.IntN(len(targets))], someSettings(r), someSettings(r)))
		}
		for _, policy := range policies {
			policy.CreationTimestamp = metav1.Unix(r.Int64N(5), 0)
		}
		g := gatewayapi.Build(aGateway(policies...))
		if len(g.Rules) == 0 {
			t.Fatal("nothing is served or refused")
		}
		covered := false
		for _, rule := range g.Rules {
			for _, i := range rule.Listeners {
				if of.SectionName != "" && string(g.Listeners[i].Name) != of.SectionName {
					continue
				}
				covered = true
				if what := allows(rule.Rule, refuse); what != "" {
					t.Fatalf("seed %d: rule %q of listener %q lets in %s: %+v", seed, rule.Name, g.Listeners[i].Name, what, rule.Rule)
				}
			}
		}
		if !covered {
			t.Fatalf("seed %d: no rule is covered", seed)
		}
	}
}

// What a policy that cannot be used is for is refused, on every listener and in every rule, and nothing else is.
func TestWhatABrokenPolicyIsForIsRefused(t *testing.T) {
	size := int64(1)
	settings := &slipwayv1alpha1.GatewayPolicySettings{MaxBodyBytes: &size}
	for name, test := range map[string]struct {
		target  slipwayv1alpha1.PolicyTargetReference
		refused func(rule gatewayapi.Rule, listener gatewayv1.SectionName) bool
	}{
		"a Gateway":  {slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}, func(gatewayapi.Rule, gatewayv1.SectionName) bool { return true }},
		"a listener": {slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge", SectionName: "admin"}, func(_ gatewayapi.Rule, l gatewayv1.SectionName) bool { return l == "admin" }},
		"a route":    {slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop"}, func(gatewayapi.Rule, gatewayv1.SectionName) bool { return true }},
		"a rule":     {slipwayv1alpha1.PolicyTargetReference{Kind: "HTTPRoute", Name: "shop", SectionName: "two"}, func(r gatewayapi.Rule, _ gatewayv1.SectionName) bool { return r.Place == 1 }},
	} {
		namespace := map[string]string{"Gateway": "infra", "HTTPRoute": "team"}[test.target.Kind]
		in := aGateway(attachedPolicy(namespace, "broken", test.target, settings, nil))
		in.Unknown[types.UID(namespace+"broken")] = []string{"defaults.oidc"}
		g := gatewayapi.Build(in)
		seen := 0
		for _, rule := range g.Rules {
			for _, i := range rule.Listeners {
				seen++
				if want := test.refused(rule, g.Listeners[i].Name); (rule.Fault != nil) != want {
					t.Errorf("%s: rule %q of listener %q is refused: %v, want %v", name, rule.Name, g.Listeners[i].Name, rule.Fault != nil, want)
				}
			}
		}
		if seen != 4 {
			t.Errorf("%s: %d rules", name, seen)
		}
		if len(g.GatewayPolicies) != 1 || g.GatewayPolicies[0].Served || g.GatewayPolicies[0].Conditions[0].Reason != slipwayv1alpha1.ReasonPolicyInvalid {
			t.Errorf("%s: the policy says %+v", name, g.GatewayPolicies)
		}
	}
}

// Where nobody reads what is sent, only the address can be asked for. Who demands more keeps everybody out.
func TestPoliciesOfConnectionsThatAreNotRead(t *testing.T) {
	token := &slipwayv1alpha1.Auth{JWT: &slipwayv1alpha1.JWTAuth{Issuer: "i", JWKSURL: "https://id.example.com/keys"}}
	office, size := &slipwayv1alpha1.ClientAddresses{Allow: []slipwayv1alpha1.AddressRange{"192.0.2.0/24"}}, int64(10)
	edge := slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge"}
	for name, tc := range map[string]struct {
		target              slipwayv1alpha1.PolicyTargetReference
		defaults, overrides *slipwayv1alpha1.GatewayPolicySettings
		addresses, out      bool
	}{
		"addresses in defaults":      {edge, &slipwayv1alpha1.GatewayPolicySettings{ClientAddresses: office}, nil, true, false},
		"addresses in overrides":     {edge, nil, &slipwayv1alpha1.GatewayPolicySettings{ClientAddresses: office}, true, false},
		"auth in defaults":           {edge, &slipwayv1alpha1.GatewayPolicySettings{Auth: token}, nil, false, false},
		"auth in overrides":          {edge, nil, &slipwayv1alpha1.GatewayPolicySettings{Auth: token}, false, true},
		"auth of another listener":   {slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: "edge", SectionName: "web"}, nil, &slipwayv1alpha1.GatewayPolicySettings{Auth: token}, false, false},
		"what is for requests":       {edge, nil, &slipwayv1alpha1.GatewayPolicySettings{MaxBodyBytes: &size, RateLimit: &slipwayv1alpha1.RateLimit{Requests: 1, Period: "1s"}, CORS: &slipwayv1alpha1.CORS{AllowOrigins: []slipwayv1alpha1.Origin{"*"}}, Compression: &slipwayv1alpha1.Compression{}, Cache: &slipwayv1alpha1.Cache{}}, false, false},
		"what cannot be used at all": {edge, nil, &slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := aGateway(attachedPolicy("infra", "p", tc.target, tc.defaults, tc.overrides))
			all, infra, port := gatewayv1.NamespacesFromAll, gatewayv1.Namespace("infra"), gatewayv1.PortNumber(80)
			section := gatewayv1.SectionName("raw")
			in.Gateway.Spec.Listeners = append(in.Gateway.Spec.Listeners, gatewayv1.Listener{
				Name: section, Port: 5432, Protocol: gatewayv1.TCPProtocolType, AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
			})
			route := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "raw", UID: "raw"}}
			route.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: &infra, Name: "edge", SectionName: &section}}
			route.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}}}}}
			in.TCPRoutes = []*gatewayv1.TCPRoute{route}
			g := gatewayapi.Build(in)
			for i := range g.Rules {
				r := &g.Rules[i].Rule
				if r.Transport != model.TransportTCP {
					continue
				}
				if got := r.ClientAddresses != nil; got != tc.addresses {
					t.Errorf("addresses are asked for: %v, want %v", got, tc.addresses)
				}
				if got := r.Fault != nil; got != tc.out {
					t.Errorf("nobody comes in: %v (%v), want %v", got, r.Fault, tc.out)
				}
				if f, _ := table.Check(r); f != nil && r.Fault == nil {
					t.Errorf("the pods refuse it: %v", f)
				}
				return
			}
			t.Fatal("there is no rule for connections")
		})
	}
}

// A policy may name things of two Gateways. What it cannot have at the one does not concern the other.
func TestAConflictIsToldWhereItIs(t *testing.T) {
	target := func(name string) slipwayv1alpha1.PolicyTargetReference {
		return slipwayv1alpha1.PolicyTargetReference{Kind: "Gateway", Name: name}
	}
	size := int64(10)
	older := attachedPolicy("infra", "a", target("edge"), &slipwayv1alpha1.GatewayPolicySettings{MaxBodyBytes: &size}, nil)
	younger := attachedPolicy("infra", "b", target("edge"), &slipwayv1alpha1.GatewayPolicySettings{MaxBodyBytes: &size}, nil)
	for name, tc := range map[string]struct{ olderIsFor, want string }{
		"both are for this Gateway":    {"edge", slipwayv1alpha1.ReasonPolicyConflicted},
		"they meet at another Gateway": {"elsewhere", slipwayv1alpha1.ReasonPolicyAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			older.Spec.TargetRefs = []slipwayv1alpha1.PolicyTargetReference{target(tc.olderIsFor)}
			younger.Spec.TargetRefs = []slipwayv1alpha1.PolicyTargetReference{target("edge"), target("elsewhere")}
			g := gatewayapi.Build(aGateway(older, younger))
			last := g.GatewayPolicies[len(g.GatewayPolicies)-1]
			if last.Name.Name != "b" || last.Conditions[0].Reason != tc.want {
				t.Errorf("%s: %s, want %s", last.Name, last.Conditions[0].Reason, tc.want)
			}
		})
	}
}
