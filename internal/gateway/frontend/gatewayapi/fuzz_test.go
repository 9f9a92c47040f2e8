package gatewayapi

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// cluster makes objects that fit together often, and are wrong in every way now and then.
type cluster struct{ *rand.Rand }

func pick[T any](c cluster, from ...T) T { return from[c.IntN(len(from))] }

func maybe[T any](c cluster, from ...T) *T {
	if c.IntN(3) == 0 {
		return nil
	}
	one := pick(c, from...)
	return &one
}

func several[T any](c cluster, most int, make func() T) []T {
	var all []T
	for range c.IntN(most + 1) {
		all = append(all, make())
	}
	return all
}

var (
	namespaces = []string{"infra", "team", "data"}
	hostnames  = []gatewayv1.Hostname{"", "a.example.com", "*.example.com", "*.a.example.com", "b.example.org", "A.example.com"}
	names      = []gatewayv1.ObjectName{"web", "gone", "away", "edge"}
	sections   = []gatewayv1.SectionName{"l0", "l1", "l2", "none"}
	ports      = []int32{80, 81, 443, 15021}
	groups     = []gatewayv1.Group{"", group, "x"}
)

func (c cluster) input() Input {
	in := Input{
		ReservedPorts: []int32{15021}, Gateway: c.gateway(),
		Namespaces: map[string]map[string]string{"team": {"team": "blue"}},
		Services: map[types.NamespacedName]Service{
			{Namespace: "team", Name: "web"}: {Ports: map[int32]Port{80: {Name: "plain"}, 81: {AppProtocol: "kubernetes.io/h2c"}, 443: {Name: "secure", AppProtocol: "https"}, 15021: {AppProtocol: "x"}}, UDP: map[int32]Port{80: {Name: "datagrams"}}},
			{Namespace: "data", Name: "web"}: {Ports: map[int32]Port{80: {}}}, {Namespace: "team", Name: "away"}: {External: true},
		},
		Secrets: map[types.NamespacedName]Secret{{Namespace: "infra", Name: "web"}: {}, {Namespace: "data", Name: "web"}: {}, {Namespace: "infra", Name: "away"}: {Problem: "it is empty"}},
	}
	for i := range c.IntN(4) {
		route := &gatewayv1.HTTPRoute{ObjectMeta: c.meta(i)}
		route.Spec.ParentRefs = several(c, 3, c.parentRef)
		route.Spec.Hostnames = several(c, 2, func() gatewayv1.Hostname { return pick(c, hostnames[1:]...) })
		route.Spec.Rules = several(c, 3, c.httpRule)
		in.HTTPRoutes = append(in.HTTPRoutes, route)
	}
	for i := range c.IntN(3) {
		route := &gatewayv1.GRPCRoute{ObjectMeta: c.meta(i)}
		route.Spec.ParentRefs = several(c, 3, c.parentRef)
		route.Spec.Hostnames = several(c, 2, func() gatewayv1.Hostname { return pick(c, hostnames[1:]...) })
		route.Spec.Rules = several(c, 3, c.grpcRule)
		in.GRPCRoutes = append(in.GRPCRoutes, route)
	}
	for i := range c.IntN(3) {
		route := &gatewayv1.TLSRoute{ObjectMeta: c.meta(i)}
		route.Spec.ParentRefs = several(c, 3, c.parentRef)
		route.Spec.Hostnames = several(c, 2, func() gatewayv1.Hostname { return pick(c, hostnames[1:]...) })
		for range c.IntN(3) {
			route.Spec.Rules = append(route.Spec.Rules, gatewayv1.TLSRouteRule{BackendRefs: several(c, 2, c.backendRef)})
		}
		in.TLSRoutes = append(in.TLSRoutes, route)
	}
	for i := range c.IntN(3) {
		tcp, udp := &gatewayv1.TCPRoute{ObjectMeta: c.meta(i)}, &gatewayv1.UDPRoute{ObjectMeta: c.meta(i)}
		tcp.Spec.ParentRefs, udp.Spec.ParentRefs = several(c, 3, c.parentRef), several(c, 3, c.parentRef)
		for range c.IntN(3) {
			tcp.Spec.Rules = append(tcp.Spec.Rules, gatewayv1.TCPRouteRule{BackendRefs: several(c, 2, c.backendRef)})
			udp.Spec.Rules = append(udp.Spec.Rules, gatewayv1.UDPRouteRule{BackendRefs: several(c, 2, c.backendRef)})
		}
		in.TCPRoutes, in.UDPRoutes = append(in.TCPRoutes, tcp), append(in.UDPRoutes, udp)
	}
	in.Grants = several(c, 3, c.grant)
	in.Bundles = map[types.NamespacedName]Bundle{{Namespace: "infra", Name: "web"}: {}, {Namespace: "team", Name: "web"}: {}, {Namespace: "data", Name: "web"}: {}, {Namespace: "team", Name: "away"}: {Problem: "it is empty"}}
	for i := range c.IntN(4) {
		in.Policies = append(in.Policies, c.policy(i))
	}
	in.Unknown = map[types.UID][]string{}
	for i := range c.IntN(5) {
		policy := c.attached(i)
		in.GatewayPolicies = append(in.GatewayPolicies, policy)
		if c.IntN(16) == 0 {
			in.Unknown[policy.UID] = []string{"defaults.later"}
		}
	}
	in.Authentication = Authenticate(in.GatewayPolicies, func(types.NamespacedName) (map[string][]byte, bool) { return nil, false })
	in.Gateway.Spec.AllowedListeners = c.allowedListeners()
	for i := range c.IntN(4) {
		in.ListenerSets = append(in.ListenerSets, c.set(i))
	}
	return in
}

func (c cluster) meta(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: pick(c, namespaces...), Name: fmt.Sprintf("r%d", i), Generation: int64(c.IntN(9)),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(c.IntN(3)), 0)),
	}
}

func (c cluster) gateway() *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", Generation: 7}}
	if c.IntN(2) == 0 {
		g.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{
			Default: gatewayv1.TLSConfig{Validation: c.validation()},
			PerPort: []gatewayv1.TLSPortConfig{{Port: pick(c, ports...), TLS: gatewayv1.TLSConfig{Validation: c.validation()}}},
		}}
	}
	g.Spec.Listeners = c.listeners()
	return g
}

func (c cluster) listeners() []gatewayv1.Listener {
	var all []gatewayv1.Listener
	for i := range c.IntN(4) {
		l := gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Port: pick(c, ports...), Hostname: maybe(c, hostnames...),
			Protocol: pick(c, gatewayv1.HTTPProtocolType, gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType, gatewayv1.TCPProtocolType, gatewayv1.TLSProtocolType, gatewayv1.TLSProtocolType, gatewayv1.UDPProtocolType, "X"),
		}
		if l.Protocol == gatewayv1.HTTPSProtocolType || l.Protocol == gatewayv1.TLSProtocolType {
			l.TLS = &gatewayv1.ListenerTLSConfig{Mode: maybe(c, gatewayv1.TLSModeTerminate, gatewayv1.TLSModePassthrough), CertificateRefs: several(c, 2, func() gatewayv1.SecretObjectReference {
				return gatewayv1.SecretObjectReference{
					Group: maybe(c, append(groups, "", "")...), Kind: maybe[gatewayv1.Kind](c, "Secret", "Secret", "ConfigMap"), Name: pick(c, names...), Namespace: maybe[gatewayv1.Namespace](c, "data", "infra"),
				}
			})}
		}
		if c.IntN(2) == 0 {
			l.AllowedRoutes = &gatewayv1.AllowedRoutes{
				Namespaces: &gatewayv1.RouteNamespaces{From: maybe(c, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector, "X")},
				Kinds: several(c, 2, func() gatewayv1.RouteGroupKind {
					return gatewayv1.RouteGroupKind{Group: maybe(c, groups...), Kind: pick[gatewayv1.Kind](c, "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "X")}
				}),
			}
			if c.IntN(2) == 0 {
				l.AllowedRoutes.Namespaces.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
			}
		}
		all = append(all, l)
	}
	return all
}

func (c cluster) policy(i int) *gatewayv1.BackendTLSPolicy {
	p := &gatewayv1.BackendTLSPolicy{ObjectMeta: c.meta(i)}
	p.Spec.TargetRefs = several(c, 2, func() gatewayv1.LocalPolicyTargetReferenceWithSectionName {
		return gatewayv1.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: pick[gatewayv1.Group](c, "", "", "x"), Kind: pick[gatewayv1.Kind](c, "Service", "Service", "X"), Name: pick(c, names...)},
			SectionName:                maybe[gatewayv1.SectionName](c, "plain", "secure", "none"),
		}
	})
	p.Spec.Validation.Hostname = pick[gatewayv1.PreciseHostname](c, "web.internal", "web.internal", "")
	p.Spec.Validation.WellKnownCACertificates = maybe[gatewayv1.WellKnownCACertificatesType](c, "System", "X")
	p.Spec.Validation.CACertificateRefs = several(c, 2, func() gatewayv1.LocalObjectReference {
		return gatewayv1.LocalObjectReference{Group: pick[gatewayv1.Group](c, "", "", "x"), Kind: pick[gatewayv1.Kind](c, "ConfigMap", "ConfigMap", "X"), Name: pick(c, names...)}
	})
	p.Spec.Validation.SubjectAltNames = several(c, 1, func() gatewayv1.SubjectAltName {
		return gatewayv1.SubjectAltName{Type: pick(c, gatewayv1.HostnameSubjectAltNameType, gatewayv1.URISubjectAltNameType, "X"), Hostname: "a", URI: "b:c"}
	})
	return p
}

func (c cluster) validation() *gatewayv1.FrontendTLSValidation {
	if c.IntN(2) == 0 {
		return nil
	}
	return &gatewayv1.FrontendTLSValidation{
		Mode: pick(c, "", gatewayv1.AllowValidOnly, gatewayv1.AllowInsecureFallback, "X"),
		CACertificateRefs: several(c, 2, func() gatewayv1.ObjectReference {
			return gatewayv1.ObjectReference{Group: pick[gatewayv1.Group](c, "", "", "x"), Kind: pick[gatewayv1.Kind](c, "ConfigMap", "ConfigMap", "X"), Name: pick(c, names...), Namespace: maybe[gatewayv1.Namespace](c, "infra", "data")}
		}),
	}
}

func (c cluster) parentRef() gatewayv1.ParentReference {
	if c.IntN(3) == 0 {
		return gatewayv1.ParentReference{
			Kind: new(gatewayv1.Kind(setKind)), Namespace: maybe[gatewayv1.Namespace](c, "infra", "team"), Name: pick[gatewayv1.ObjectName](c, "s0", "s1", "s2"),
			SectionName: maybe(c, append(sections, "")...), Port: maybe(c, ports...),
		}
	}
	return gatewayv1.ParentReference{
		Group: maybe[gatewayv1.Group](c, group, group, "x"), Kind: maybe[gatewayv1.Kind](c, "Gateway", "Gateway", "Service"), Namespace: maybe[gatewayv1.Namespace](c, "infra", "infra", "team"),
		Name: pick[gatewayv1.ObjectName](c, "edge", "edge", "other"), SectionName: maybe(c, sections...), Port: maybe(c, ports...),
	}
}

func (c cluster) reference() gatewayv1.BackendObjectReference {
	return gatewayv1.BackendObjectReference{
		Group: maybe(c, append(groups, "", "")...), Kind: maybe[gatewayv1.Kind](c, "Service", "Service", "X"), Name: pick(c, names...), Namespace: maybe[gatewayv1.Namespace](c, "team", "data"), Port: maybe(c, ports...),
	}
}

func (c cluster) backendRef() gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: c.reference(), Weight: maybe[int32](c, 0, 1, 5, -1)}
}

func (c cluster) httpRule() gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{
		Name: maybe[gatewayv1.SectionName](c, "one", "two"),
		Matches: several(c, 2, func() gatewayv1.HTTPRouteMatch {
			return gatewayv1.HTTPRouteMatch{
				Path: &gatewayv1.HTTPPathMatch{Type: maybe(c, gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchRegularExpression, "X"), Value: maybe(c, "/", "/a", "/a/b", "(", "a")},
				Headers: several(c, 2, func() gatewayv1.HTTPHeaderMatch {
					return gatewayv1.HTTPHeaderMatch{Type: maybe(c, gatewayv1.HeaderMatchExact, "X"), Name: "x-a", Value: "a"}
				}),
				Method: maybe(c, gatewayv1.HTTPMethodGet, "X"),
			}
		}),
		Filters: several(c, 2, c.httpFilter),
		BackendRefs: several(c, 2, func() gatewayv1.HTTPBackendRef {
			return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: c.reference(), Weight: maybe[int32](c, 0, 1, 5, -1)}, Filters: several(c, 1, c.httpFilter)}
		}),
		Timeouts: maybe(c, gatewayv1.HTTPRouteTimeouts{Request: maybe[gatewayv1.Duration](c, "1s", "0s", "x")}),
		Retry:    maybe(c, gatewayv1.HTTPRouteRetry{Backoff: maybe[gatewayv1.Duration](c, "1s", "x")}),
	}
}

func (c cluster) httpFilter() gatewayv1.HTTPRouteFilter {
	modifier := &gatewayv1.HTTPPathModifier{Type: pick[gatewayv1.HTTPPathModifierType](c, "ReplaceFullPath", "ReplacePrefixMatch", "X"), ReplaceFullPath: maybe(c, "", "/x"), ReplacePrefixMatch: maybe(c, "", "/y")}
	f := gatewayv1.HTTPRouteFilter{Type: pick[gatewayv1.HTTPRouteFilterType](c, "RequestHeaderModifier", "ResponseHeaderModifier", "RequestRedirect", "URLRewrite", "RequestMirror", "CORS", "ExtensionRef", "X")}
	if c.IntN(5) == 0 {
		return f
	}
	f.RequestHeaderModifier = &gatewayv1.HTTPHeaderFilter{Remove: []string{"x-a"}}
	f.ResponseHeaderModifier = f.RequestHeaderModifier
	f.RequestRedirect = &gatewayv1.HTTPRequestRedirectFilter{Path: modifier}
	f.URLRewrite = &gatewayv1.HTTPURLRewriteFilter{Path: modifier}
	f.RequestMirror = &gatewayv1.HTTPRequestMirrorFilter{BackendRef: c.reference(), Percent: maybe[int32](c, 5, 101), Fraction: maybe(c, gatewayv1.Fraction{Numerator: 1})}
	f.CORS = &gatewayv1.HTTPCORSFilter{AllowOrigins: []gatewayv1.CORSOrigin{"*"}}
	return f
}

func (c cluster) grpcRule() gatewayv1.GRPCRouteRule {
	return gatewayv1.GRPCRouteRule{
		Matches: several(c, 2, func() gatewayv1.GRPCRouteMatch {
			return gatewayv1.GRPCRouteMatch{Method: &gatewayv1.GRPCMethodMatch{
				Type: maybe[gatewayv1.GRPCMethodMatchType](c, "Exact", "RegularExpression", "X"), Service: maybe(c, "s", "("), Method: maybe(c, "m", "n"),
			}}
		}),
		BackendRefs: several(c, 2, func() gatewayv1.GRPCBackendRef {
			return gatewayv1.GRPCBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: c.reference()}}
		}),
	}
}

func (c cluster) grant() *gatewayv1.ReferenceGrant {
	return &gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: pick(c, namespaces...)}, Spec: gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Group: pick(c, groups...), Kind: pick[gatewayv1.Kind](c, "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "Gateway", setKind), Namespace: gatewayv1.Namespace(pick(c, namespaces...))}},
		To:   []gatewayv1.ReferenceGrantTo{{Group: pick(c, groups...), Kind: pick[gatewayv1.Kind](c, "Service", "Secret"), Name: maybe(c, names...)}},
	}}
}

// FuzzGraph builds graphs of random clusters. Whatever is in them, every rule is served or refused, every
// reference to another namespace was permitted, and the order in which the objects come decides nothing.
func FuzzGraph(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		in := cluster{rand.New(rand.NewPCG(seed, 0))}.input()
		g := Build(in)
		checkConditions(t, g)
		checkAttached(t, g)
		checkTLS(t, in, g)
		checkRules(t, in, g)
		checkSets(t, in, g)
		checkGatewayPolicies(t, in, g)
		enough := onlyNamed(in)
		if diff := cmp.Diff(g, Build(enough), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Fatalf("with nothing but what the objects name (-all +named):\n%s", diff)
		}
		all := cmp.Exporter(func(reflect.Type) bool { return true })
		for range 3 {
			shuffle := rand.New(rand.NewPCG(seed, 1))
			shuffle.Shuffle(len(in.HTTPRoutes), func(a, b int) { in.HTTPRoutes[a], in.HTTPRoutes[b] = in.HTTPRoutes[b], in.HTTPRoutes[a] })
			shuffle.Shuffle(len(in.GRPCRoutes), func(a, b int) { in.GRPCRoutes[a], in.GRPCRoutes[b] = in.GRPCRoutes[b], in.GRPCRoutes[a] })
			shuffle.Shuffle(len(in.TLSRoutes), func(a, b int) { in.TLSRoutes[a], in.TLSRoutes[b] = in.TLSRoutes[b], in.TLSRoutes[a] })
			shuffle.Shuffle(len(in.TCPRoutes), func(a, b int) { in.TCPRoutes[a], in.TCPRoutes[b] = in.TCPRoutes[b], in.TCPRoutes[a] })
			shuffle.Shuffle(len(in.UDPRoutes), func(a, b int) { in.UDPRoutes[a], in.UDPRoutes[b] = in.UDPRoutes[b], in.UDPRoutes[a] })
			shuffle.Shuffle(len(in.Grants), func(a, b int) { in.Grants[a], in.Grants[b] = in.Grants[b], in.Grants[a] })
			shuffle.Shuffle(len(in.ListenerSets), func(a, b int) {
				in.ListenerSets[a], in.ListenerSets[b] = in.ListenerSets[b], in.ListenerSets[a]
			})
			shuffle.Shuffle(len(in.GatewayPolicies), func(a, b int) {
				in.GatewayPolicies[a], in.GatewayPolicies[b] = in.GatewayPolicies[b], in.GatewayPolicies[a]
			})
			shuffle.Shuffle(len(in.Policies), func(a, b int) { in.Policies[a], in.Policies[b] = in.Policies[b], in.Policies[a] })
			if diff := cmp.Diff(g.TLS, Build(in).TLS, all); diff != "" {
				t.Fatalf("in another order (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(g.Rules, Build(in).Rules, all, cmpopts.IgnoreFields(Rule{}, "Route")); diff != "" {
				t.Fatalf("in another order (-before +after):\n%s", diff)
			}
		}
	})
}

// onlyNamed is an input with the Services, Secrets and ConfigMaps that its objects name, and no others.
func onlyNamed(in Input) Input {
	services, secrets := in.Services, in.Secrets
	in.Services, in.Secrets = map[types.NamespacedName]Service{}, map[types.NamespacedName]Secret{}
	var names []types.NamespacedName
	for _, route := range in.HTTPRoutes {
		names = append(names, ServicesOfHTTPRoute(route)...)
	}
	for _, route := range in.GRPCRoutes {
		names = append(names, ServicesOfGRPCRoute(route)...)
	}
	for _, route := range in.TLSRoutes {
		names = append(names, ServicesOfTLSRoute(route)...)
	}
	for _, route := range in.TCPRoutes {
		names = append(names, ServicesOfTCPRoute(route)...)
	}
	for _, route := range in.UDPRoutes {
		names = append(names, ServicesOfUDPRoute(route)...)
	}
	for _, name := range names {
		if service, exists := services[name]; exists {
			in.Services[name] = service
		}
	}
	for _, name := range append(Certificates(in.Gateway), CertificatesOfSets(in)...) {
		if secret, exists := secrets[name]; exists {
			in.Secrets[name] = secret
		}
	}
	bundles := in.Bundles
	in.Bundles = map[types.NamespacedName]Bundle{}
	names = Bundles(in.Gateway)
	for _, policy := range in.Policies {
		names = append(names, BundlesOfPolicy(policy)...)
	}
	for _, name := range names {
		if bundle, exists := bundles[name]; exists {
			in.Bundles[name] = bundle
		}
	}
	return in
}

// reasons is the syntax of a reason (metav1.Condition).
var reasons = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

func checkConditions(t *testing.T, g *Graph) {
	t.Helper()
	check := func(of string, generation int64, conditions []metav1.Condition, needed ...string) {
		seen := map[string]bool{}
		for _, c := range conditions {
			if seen[c.Type] || !reasons.MatchString(c.Reason) || c.ObservedGeneration != generation || len(c.Message) > maxMessage || c.Message == "" {
				t.Errorf("%s has the condition %+v", of, c)
			}
			seen[c.Type] = true
		}
		for _, one := range needed {
			if !seen[one] {
				t.Errorf("%s has no condition %s", of, one)
			}
		}
	}
	check("the Gateway", 7, []metav1.Condition{g.Accepted, g.ResolvedRefs}, "Accepted", "ResolvedRefs")
	for _, l := range g.Listeners {
		generation := int64(7)
		if l.Set != nil {
			generation = l.Set.Generation
		}
		check("listener "+l.Key(), generation, l.Conditions, "Accepted", "ResolvedRefs")
	}
	for _, s := range g.Sets {
		check("set "+s.Name.String(), s.Generation, []metav1.Condition{s.Accepted}, "Accepted")
	}
	for _, p := range g.Policies {
		check("policy "+p.Name.String(), p.Generation, p.Conditions, "Accepted", "ResolvedRefs")
	}
	for _, p := range g.GatewayPolicies {
		check("policy "+p.Name.String(), p.Generation, p.Conditions, "Accepted")
	}
	for _, r := range g.Routes {
		if len(r.Parents) == 0 {
			t.Errorf("route %s has no parent here", r.Name)
		}
		for _, p := range r.Parents {
			check("route "+r.Name.String(), r.Generation, p.Conditions, "Accepted", "ResolvedRefs")
		}
	}
}

// checkTLS: what a policy is for is reached with TLS that it asks for, or not at all. A listener that asks for certificates
// trusts only what it may.
func checkTLS(t *testing.T, in Input, g *Graph) {
	t.Helper()
	reached := func(name types.NamespacedName, port int32, transport model.Transport) {
		section := in.Services[name].Ports[port].Name
		if transport == model.TransportUDP {
			section = in.Services[name].UDP[port].Name
		}
		if transport == model.TransportTLS {
			return // the TLS is that of clients
		}
		for _, p := range in.Policies {
			for _, ref := range p.Spec.TargetRefs {
				named := ref.SectionName == nil || (*ref.SectionName != "" && string(*ref.SectionName) == section)
				if p.Namespace != name.Namespace || ref.Group != "" || ref.Kind != "Service" || string(ref.Name) != name.Name || !named {
					continue
				}
				with := g.TLS[model.BackendName{ServiceName: model.ServiceName(name), Port: port, Transport: transport}]
				if with == nil || with.ServerName == "" {
					t.Errorf("port %d of %s is reached without TLS, in spite of policy %s/%s", port, name, p.Namespace, p.Name)
				}
			}
		}
	}
	for _, r := range g.Rules {
		for _, to := range r.Backends {
			if to.Fault == nil {
				reached(types.NamespacedName{Namespace: to.Namespace, Name: to.Service}, to.Port, r.Transport)
			}
			for _, m := range to.Mirrors {
				reached(types.NamespacedName{Namespace: m.Namespace, Name: m.Service}, m.Port, r.Transport)
			}
		}
		for _, m := range r.Mirrors {
			reached(types.NamespacedName{Namespace: m.Namespace, Name: m.Service}, m.Port, r.Transport)
		}
	}
	for name, with := range g.TLS {
		for _, bundle := range with.Bundles {
			if known, exists := in.Bundles[bundle]; !exists || known.Problem != "" || bundle.Namespace != name.Namespace {
				t.Errorf("%s is reached with authorities of %s", name, bundle)
			}
		}
	}
	for _, l := range g.Listeners {
		wanted := in.Gateway.Spec.TLS != nil && in.Gateway.Spec.TLS.Frontend.Default.Validation != nil
		if in.Gateway.Spec.TLS != nil && in.Gateway.Spec.TLS.Frontend.PerPort[0].Port == l.Port {
			wanted = in.Gateway.Spec.TLS.Frontend.PerPort[0].TLS.Validation != nil
		}
		if l.Valid && l.ends() && wanted != (l.Clients != nil && len(l.Clients.Bundles) > 0) {
			t.Errorf("listener %s is to check clients: %t, and does by %+v", l.Name, wanted, l.Clients)
		}
	}
}

func checkAttached(t *testing.T, g *Graph) {
	t.Helper()
	for i, l := range g.Listeners {
		count := int32(0)
		for _, r := range g.Routes {
			if slices.ContainsFunc(r.Parents, func(p *Parent) bool { return p.Accepted() && slices.Contains(p.Listeners, i) }) {
				count++
			}
		}
		if l.Attached != count {
			t.Errorf("listener %s says that %d routes are attached, and %d are", l.Name, l.Attached, count)
		}
	}
}

func checkRules(t *testing.T, in Input, g *Graph) {
	t.Helper()
	for _, r := range g.Rules {
		for _, i := range r.Listeners {
			if l := g.Listeners[i]; l.transport() != r.Transport {
				t.Errorf("rule %s for %q is served by listener %s, which is for %q", r.Name, r.Transport, l.Name, l.transport())
			}
			if l := g.Listeners[i]; !l.Valid || !covers(l.Hostname, r.Host) {
				t.Errorf("rule %s for host %q is served by listener %s (valid: %t) for %q", r.Name, r.Host, l.Name, l.Valid, l.Hostname)
			}
		}
		if unsupported := r.Route.rules[r.Place].unsupported != nil; unsupported != (r.Fault != nil) {
			t.Errorf("rule %s is unsupported: %t, and its fault is %v", r.Name, unsupported, r.Fault)
		}
		for _, to := range r.Backends {
			from := reference{fromGroup: group, fromKind: string(r.Route.Kind), fromNamespace: r.Route.Name.Namespace, toKind: "Service", to: types.NamespacedName{Namespace: to.Namespace, Name: to.Service}}
			if to.Fault == nil && !newGrants(in.Grants).permit(from) {
				t.Errorf("rule %s leads to %s/%s without a grant", r.Name, to.Namespace, to.Service)
			}
		}
	}
	_, problems := table.Compile(g.Table(nil))
	for _, p := range problems {
		if p.Index < 0 || g.Rules[p.Index].Fault != nil {
			continue
		}
		// A backend that is missing or refused has its share answered with 500.
		ofBackend := slices.ContainsFunc(g.Rules[p.Index].Backends, func(b model.BackendRef) bool { return b.Fault != nil && strings.HasSuffix(p.Message, b.Fault.Message) })
		if !ofBackend && p.Reason != model.ReasonBackendNotFound {
			t.Errorf("rule %s is not refused, and the table cannot serve it: %s: %s", p.Route, p.Reason, p.Message)
		}
	}
	for i, l := range g.Listeners {
		for _, r := range g.Routes {
			if !l.Valid || !slices.Contains(r.attached(), i) {
				continue
			}
			for place := range r.rules {
				if !r.rules[place].known() {
					continue
				}
				if !slices.ContainsFunc(g.Rules, func(rule Rule) bool {
					return rule.Route == r && rule.Place == place && slices.Contains(rule.Listeners, i)
				}) {
					t.Errorf("rule %d of %s is neither served nor refused by listener %s", place, r.Name, l.Name)
				}
			}
		}
	}
}
