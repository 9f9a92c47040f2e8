package gatewayapi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
)

// attached is a GatewayPolicy for something that may be there.
func (c cluster) attached(i int) *slipwayv1alpha1.GatewayPolicy {
	policy := &slipwayv1alpha1.GatewayPolicy{ObjectMeta: c.meta(i)}
	policy.UID = types.UID(fmt.Sprint("policy", i))
	policy.Spec.TargetRefs = several(c, 3, func() slipwayv1alpha1.PolicyTargetReference {
		ref := slipwayv1alpha1.PolicyTargetReference{
			Kind: pick(c, "Gateway", "Gateway", "Gateway", "ListenerSet", "HTTPRoute", "HTTPRoute", "HTTPRoute", "GRPCRoute", "GRPCRoute", oneIn(c, 8, "X", "Gateway")), Name: pick(c, "edge", "r0", "r1", "r2"),
			SectionName: pick(c, "", "", "", "l0", "l1", "1", "named", "named"),
		}
		if name := map[string]string{"Gateway": "edge", "HTTPRoute": "r0", "GRPCRoute": "r1", "ListenerSet": "r2"}[ref.Kind]; c.IntN(4) > 0 {
			ref.Name = name // that of something that is likely to be there
		}
		return ref
	})
	policy.Spec.Defaults, policy.Spec.Overrides = c.settings(), c.settings()
	return policy
}

// oneIn is the first value once in so many times, and else the second.
func oneIn[T any](c cluster, times int, rare, often T) T {
	if c.IntN(times) == 0 {
		return rare
	}
	return often
}

func (c cluster) settings() *slipwayv1alpha1.GatewayPolicySettings {
	s := &slipwayv1alpha1.GatewayPolicySettings{}
	switch c.IntN(24) {
	case 0:
		return nil
	case 1:
		s.Auth = &slipwayv1alpha1.Auth{} // nothing is asked for
	case 2, 3, 4, 5, 6, 7, 8, 9, 10, 11:
		s.Auth = &slipwayv1alpha1.Auth{JWT: &slipwayv1alpha1.JWTAuth{Issuer: fmt.Sprint("issuer", c.IntN(9)), JWKSURL: "https://id.example.com/"}}
	case 13, 14, 15, 16:
		s.Auth = &slipwayv1alpha1.Auth{External: &slipwayv1alpha1.ExternalAuth{BackendService: slipwayv1alpha1.BackendService{Name: "app", Port: 80}}}
		if c.IntN(4) > 0 {
			s.Auth.External.IdentityHeader = "X-User"
		}
	case 12:
		s.Auth = &slipwayv1alpha1.Auth{Basic: &slipwayv1alpha1.BasicAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "missing"}}}
	}
	if c.IntN(2) == 0 {
		size := int64(c.IntN(50))
		s.MaxBodyBytes = &size
	}
	if c.IntN(4) == 0 {
		s.RateLimit = &slipwayv1alpha1.RateLimit{Requests: 1, Per: oneIn[slipwayv1alpha1.RateLimitScope](c, 8, pick[slipwayv1alpha1.RateLimitScope](c, "Key", "X"), "")}
	}
	return s
}

// level is how specific a policy is for a rule on a listener, from 0. It is negative if it is for something else.
func level(in Input, policy *slipwayv1alpha1.GatewayPolicy, r *Rule, l *Listener) []int {
	var levels []int
	from := &r.Route.rules[r.Place]
	for _, ref := range policy.Spec.TargetRefs {
		at := types.NamespacedName{Namespace: policy.Namespace, Name: ref.Name}
		whole, section := -1, -1
		own, set := ref.Kind == "Gateway" && at == nameOf(in), ref.Kind == "ListenerSet" && l.Set != nil && at == l.Set.Name
		switch {
		case own && l.Set == nil:
			whole, section = 0, 2
		case own:
			whole = 0
		case set:
			whole, section = 1, 2
		case ref.Kind == string(r.Route.Kind) && at == r.Route.Name:
			whole = 3
			if from.named && ref.SectionName == from.name {
				section = 4
			}
		}
		if ref.SectionName == "" && whole >= 0 {
			levels = append(levels, whole)
		}
		if ref.SectionName != "" && section == 2 && ref.SectionName == string(l.Name) || section == 4 {
			levels = append(levels, section)
		}
	}
	return levels
}

func nameOf(in Input) types.NamespacedName {
	return types.NamespacedName{Namespace: in.Gateway.Namespace, Name: in.Gateway.Name}
}

// broken reports whether a policy must not be used.
func broken(in Input, policy *slipwayv1alpha1.GatewayPolicy) bool {
	bad := len(in.Unknown[policy.UID]) > 0 || policy.Spec.Defaults == nil && policy.Spec.Overrides == nil
	for _, ref := range policy.Spec.TargetRefs {
		bad = bad || ref.Kind == "X"
	}
	for _, s := range []*slipwayv1alpha1.GatewayPolicySettings{policy.Spec.Defaults, policy.Spec.Overrides} {
		if s == nil {
			continue
		}
		bad = bad || s.MaxBodyBytes != nil && *s.MaxBodyBytes < 1
		bad = bad || s.RateLimit != nil && s.RateLimit.Per == "Key" && anonymous(s.Auth)
		bad = bad || s.RateLimit != nil && (s.RateLimit.Per == "X" || s.RateLimit.Per == "Key" && s.Auth == nil)
	}
	return bad
}

// somePolicies is a Gateway with two listeners, a ListenerSet, two routes of two rules, and random policies for them.
func somePolicies(c cluster) Input {
	all, port := gatewayv1.NamespacesFromAll, gatewayv1.PortNumber(80)
	allowed := &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}}
	infra, named, kind := gatewayv1.Namespace("infra"), gatewayv1.SectionName("named"), gatewayv1.Kind(setKind)
	listener := func(name string, port int32) gatewayv1.Listener {
		return gatewayv1.Listener{Name: gatewayv1.SectionName(name), Port: port, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: allowed}
	}
	refs := []gatewayv1.ParentReference{{Namespace: &infra, Name: "edge"}, {Kind: &kind, Name: "r2"}}
	app := gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}}
	http := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "r0"}}
	http.Spec.ParentRefs = refs
	http.Spec.Rules = []gatewayv1.HTTPRouteRule{{Name: &named, BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: app}}}, {BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: app}}}}
	grpc := &gatewayv1.GRPCRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "r1"}}
	grpc.Spec.ParentRefs, grpc.Spec.Hostnames = refs, []gatewayv1.Hostname{"grpc.example.com"}
	grpc.Spec.Rules = []gatewayv1.GRPCRouteRule{{Name: &named, BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: app}}}, {BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: app}}}}
	in := Input{
		Gateway:      &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}},
		HTTPRoutes:   []*gatewayv1.HTTPRoute{http},
		GRPCRoutes:   []*gatewayv1.GRPCRoute{grpc},
		ListenerSets: []*gatewayv1.ListenerSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "r2"}}},
		Services:     map[types.NamespacedName]Service{{Namespace: "team", Name: "app"}: {Ports: map[int32]Port{80: {}}}},
		Unknown:      map[types.UID][]string{},
	}
	in.Gateway.Spec.Listeners = []gatewayv1.Listener{listener("l0", 80), listener("l1", 81)}
	in.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &all}}
	in.ListenerSets[0].Spec.ParentRef = gatewayv1.ParentGatewayReference{Namespace: &infra, Name: "edge"}
	in.ListenerSets[0].Spec.Listeners = []gatewayv1.ListenerEntry{gatewayv1.ListenerEntry(listener("l0", 82)), gatewayv1.ListenerEntry(listener("l1", 83))}
	for i := range c.IntN(7) {
		policy := c.attached(i)
		policy.Namespace = "team"
		if policy.Spec.TargetRefs != nil && policy.Spec.TargetRefs[0].Kind == "Gateway" {
			policy.Namespace = "infra"
		}
		in.GatewayPolicies = append(in.GatewayPolicies, policy)
		if c.IntN(32) == 0 {
			in.Unknown[policy.UID] = []string{"defaults.later"}
		}
	}
	in.Authentication = Authenticate(in.GatewayPolicies, func(types.NamespacedName) (map[string][]byte, bool) { return nil, false })
	return in
}

// Which policy holds is found out a second time, in another way.
func TestPoliciesAreInheritedAsTheSpecSays(t *testing.T) {
	served, restricted := 0, 0
	for seed := range uint64(4000) {
		in := somePolicies(cluster{rand.New(rand.NewPCG(seed, 2))})
		g := Build(in)
		checkGatewayPolicies(t, in, g)
		for _, r := range g.Rules {
			if r.Fault == nil {
				served += len(r.Listeners)
			}
			if r.Auth != nil {
				restricted += len(r.Listeners)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if served < 8000 || restricted < 2000 {
		t.Errorf("%d served, %d of them restricted: the policies are too strange to show anything", served, restricted)
	}
}

// checkGatewayPolicies: a rule is served with the authentication that policies ask for, with no larger body than any override allows, or
// not at all. It finds out by itself which policy that is.
func checkGatewayPolicies(t *testing.T, in Input, g *Graph) {
	t.Helper()
	for i := range g.Rules {
		r := &g.Rules[i]
		for _, k := range r.Listeners {
			wanted, refused := expected(t, in, r, g.Listeners[k])
			switch {
			case r.Fault != nil:
			case refused:
				t.Errorf("%s is served on %s, in spite of a policy that cannot be used", r.Name, g.Listeners[k].Key())
			case wanted == "" && r.Auth != nil:
				t.Errorf("%s asks for %s on %s, and no policy does", r.Name, r.Auth.ID, g.Listeners[k].Key())
			case wanted != "" && (r.Auth == nil || r.Auth.ID != wanted):
				t.Errorf("%s asks for %+v on %s, want %s", r.Name, r.Auth, g.Listeners[k].Key(), wanted)
			case r.Auth != nil && r.Auth.External != nil:
				checkAsked(t, r)
			}
		}
	}
}

// checkAsked: a Service that is asked is in the namespace of the policy, and says who the client is where clients are counted.
func checkAsked(t *testing.T, r *Rule) {
	t.Helper()
	if of, _, _ := strings.Cut(r.Auth.ID, " "); r.Auth.External.Ref.Namespace != of {
		t.Errorf("%s asks a Service of namespace %q by a policy of %q", r.Name, r.Auth.External.Ref.Namespace, of)
	}
	if r.RateLimit != nil && r.RateLimit.Per == ratelimit.PerKey && r.Auth.External.IdentityHeader == "" {
		t.Errorf("%s counts all clients as one", r.Name)
	}
}

// expected is the authentication of a rule on a listener, by its AuthID, and whether nothing of it may be served.
func expected(t *testing.T, in Input, r *Rule, l *Listener) (auth string, refused bool) {
	t.Helper()
	least, most, override, fallback := 5, -1, "", ""
	for _, policy := range ByPrecedence(in.GatewayPolicies) {
		for _, at := range level(in, policy, r, l) {
			if broken(in, policy) {
				return "", true
			}
			if s := policy.Spec.Overrides; s != nil && s.MaxBodyBytes != nil && r.Fault == nil && first(in, policy, r, l, at) && (r.MaxBodyBytes == 0 || r.MaxBodyBytes > *s.MaxBodyBytes) {
				t.Errorf("%s takes %d bytes on %s, and %s allows %d", r.Name, r.MaxBodyBytes, l.Key(), policy.Name, *s.MaxBodyBytes)
			}
			if s := policy.Spec.Overrides; s != nil && s.Auth != nil && at < least {
				least, override = at, AuthID(policy.Namespace, s.Auth)
			}
			if s := policy.Spec.Defaults; s != nil && s.Auth != nil && at > most {
				most, fallback = at, AuthID(policy.Namespace, s.Auth)
			}
		}
	}
	if override != "" {
		return override, in.Authentication[override].Fault != nil
	}
	return fallback, fallback != "" && in.Authentication[fallback].Fault != nil
}

// first reports whether no older policy at the same level overrides the size of bodies.
func first(in Input, policy *slipwayv1alpha1.GatewayPolicy, r *Rule, l *Listener, at int) bool {
	for _, other := range ByPrecedence(in.GatewayPolicies) {
		if other == policy {
			return true
		}
		for _, level := range level(in, other, r, l) {
			if level == at && other.Spec.Overrides != nil && other.Spec.Overrides.MaxBodyBytes != nil {
				return false
			}
		}
	}
	return true
}
