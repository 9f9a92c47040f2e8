package gatewayapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

func (c cluster) allowedListeners() *gatewayv1.AllowedListeners {
	if c.IntN(4) == 0 {
		return maybe(c, gatewayv1.AllowedListeners{})
	}
	return &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{
		From:     maybe(c, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromNone, "X"),
		Selector: maybe(c, metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}),
	}}
}

func (c cluster) set(i int) *gatewayv1.ListenerSet {
	s := &gatewayv1.ListenerSet{ObjectMeta: c.meta(i)}
	s.Name, s.UID = fmt.Sprintf("s%d", i), types.UID(fmt.Sprintf("s%d", i))
	s.Spec.ParentRef = gatewayv1.ParentGatewayReference{
		Group: maybe[gatewayv1.Group](c, group, group, group, "x"), Kind: maybe[gatewayv1.Kind](c, "Gateway", "Gateway", "Gateway", "X"),
		Namespace: new(pick[gatewayv1.Namespace](c, "infra", "infra", "infra", "team")), Name: pick[gatewayv1.ObjectName](c, "edge", "edge", "edge", "other"),
	}
	for _, l := range c.listeners() {
		s.Spec.Listeners = append(s.Spec.Listeners, gatewayv1.ListenerEntry(l))
	}
	return s
}

// checkSets: a route is served by the listeners of the objects that it names and by no others, a set adds listeners only where
// the Gateway allows it, and takes nothing from what comes before it.
func checkSets(t *testing.T, in Input, g *Graph) {
	t.Helper()
	for _, r := range g.Routes {
		for _, p := range r.Parents {
			name, isSet := SetOf(p.Ref, r.Name.Namespace)
			for _, i := range p.Listeners {
				if l := g.Listeners[i]; (l.Set != nil) != isSet || isSet && l.Set.Name != name {
					t.Errorf("route %s names %+v, and is served by listener %s", r.Name, p.Ref, l.Key())
				}
			}
		}
	}
	allowed, from := in.Gateway.Spec.AllowedListeners, gatewayv1.NamespacesFromNone
	if allowed != nil && allowed.Namespaces != nil {
		from = value(allowed.Namespaces.From, from)
	}
	for i, l := range g.Listeners {
		if l.Set == nil {
			continue
		}
		namespace := l.Set.Name.Namespace
		if from == gatewayv1.NamespacesFromNone || from == "X" || from == gatewayv1.NamespacesFromSame && namespace != "infra" ||
			from == gatewayv1.NamespacesFromSelector && (allowed.Namespaces.Selector == nil || namespace != "team") {
			t.Errorf("listener %s is there, and the Gateway allows %s", l.Key(), from)
		}
		for _, name := range l.Certificates {
			if !newGrants(in.Grants).permit(reference{fromGroup: group, fromKind: setKind, fromNamespace: namespace, toKind: "Secret", to: name}) {
				t.Errorf("listener %s shows %s without a grant", l.Key(), name)
			}
		}
		for k, earlier := range g.Listeners {
			spoken := earlier.Protocol == gatewayv1.HTTPProtocolType || earlier.Protocol == gatewayv1.HTTPSProtocolType
			same := earlier.Port == l.Port && (earlier.Protocol != l.Protocol || earlier.Hostname == l.Hostname)
			if k < i && spoken && same && !earlier.barred && l.Valid {
				t.Errorf("listener %s has the place of %s", l.Key(), earlier.Key())
			}
		}
	}
	checkOwn(t, in, g)
	checkOverlaps(t, g)
}

// checkOwn: sets change nothing of the Gateway's own listeners but what overlaps with them.
func checkOwn(t *testing.T, in Input, g *Graph) {
	t.Helper()
	in.ListenerSets = nil
	alone := Build(in)
	for i, l := range alone.Listeners {
		with := g.Listeners[i]
		if with.Set != nil || with.Valid != l.Valid || with.Why() != l.Why() || with.Attached != l.Attached {
			t.Errorf("listener %s is (%t, %q, %d) alone, and (%t, %q, %d) beside sets", l.Name, l.Valid, l.Why(), l.Attached, with.Valid, with.Why(), with.Attached)
		}
	}
	if diff := cmp.Diff([]metav1.Condition{alone.Accepted, alone.ResolvedRefs}, []metav1.Condition{g.Accepted, g.ResolvedRefs}); diff != "" {
		t.Errorf("the Gateway (-alone +beside sets):\n%s", diff)
	}
}

// checkOverlaps compares with looking at every pair.
func checkOverlaps(t *testing.T, g *Graph) {
	t.Helper()
	found := newOverlaps(g.Listeners)
	for _, l := range g.Listeners {
		var want *Listener
		for _, other := range g.Listeners {
			if l.Protocol != gatewayv1.HTTPSProtocolType || other.Protocol != gatewayv1.HTTPSProtocolType || l.barred || other.barred || other.Port != l.Port || other.Hostname == l.Hostname {
				continue
			}
			if _, any := common(l.Hostname, other.Hostname); any {
				want = other
				break
			}
		}
		if got := found.with(l); got != want {
			t.Errorf("listener %s for %q overlaps with %+v, want %+v", l.Key(), l.Hostname, got, want)
		}
	}
}

// attacked is a Gateway with listeners that cannot be served now, and a set that asks for their requests.
func attacked() Input {
	host := gatewayv1.Hostname("shop.example.com")
	in := Input{Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "gateway"}}, Secrets: map[types.NamespacedName]Secret{{Namespace: "evil", Name: "own"}: {}}}
	in.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	in.Gateway.Spec.Listeners = []gatewayv1.Listener{
		{Name: "plain", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &host},
		{Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: &host, TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "gone"}}}},
	}
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "set", UID: "set", CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "edge", Namespace: new(gatewayv1.Namespace("infra"))}
	loud := gatewayv1.Hostname("SHOP.example.com")
	set.Spec.Listeners = []gatewayv1.ListenerEntry{
		{Name: "plain", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &loud},
		{Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: &host, TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "own"}}}},
		{Name: "raw", Port: 80, Protocol: gatewayv1.TCPProtocolType},
	}
	in.ListenerSets = []*gatewayv1.ListenerSet{set}
	return in
}

// A listener that cannot be served keeps its place: whoever may add a ListenerSet waits in vain for a certificate to vanish, or
// for a pod that does not know a field.
func TestASetTakesNothingOfListenersThatCannotBeServed(t *testing.T) {
	tests := map[string]func(*Input){
		"one is served, one has no certificate": func(*Input) {},
		"a pod does not know a field":           func(in *Input) { in.Unknown = map[types.UID][]string{"gateway": {"listeners[0].new"}} },
		"they conflict with others": func(in *Input) {
			twin := in.Gateway.Spec.Listeners[0]
			twin.Name = "twin"
			in.Gateway.Spec.Listeners = append(in.Gateway.Spec.Listeners, twin)
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			in := attacked()
			change(&in)
			g := Build(in)
			for _, l := range g.Of(g.Sets[0]) {
				if l.Valid {
					t.Errorf("listener %s of the set is served", l.Key())
				}
			}
			for _, l := range g.Table(nil).Listeners {
				if l.Name == "evil/set/raw" || l.Name == "evil/set/plain" || l.Name == "evil/set/tls" {
					t.Errorf("listener %s has a place in the table", l.Name)
				}
			}
			if got := g.Certificates(); len(got) != 0 {
				t.Errorf("certificates for listeners that are not served: %v", got)
			}
			if g.AttachedSets != 0 {
				t.Errorf("%d sets are attached", g.AttachedSets)
			}
		})
	}
}

// What a pod does not know of a set is refused: a field of a listener there, and any other field everywhere in the set.
func TestUnknownFieldsOfASet(t *testing.T) {
	tests := map[string]struct {
		unknown []string
		served  []string
	}{
		"none":             {served: []string{"first", "evil/set/a", "evil/set/b"}},
		"in one listener":  {unknown: []string{"listeners[1].new"}, served: []string{"first", "evil/set/a"}},
		"beside them":      {unknown: []string{"limits"}, served: []string{"first"}},
		"in the parentRef": {unknown: []string{"parentRef.port"}, served: []string{"first"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := attacked()
			a, b := gatewayv1.Hostname("a.example.com"), gatewayv1.Hostname("b.example.com")
			in.Gateway.Spec.Listeners = []gatewayv1.Listener{{Name: "first", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
			in.ListenerSets[0].Spec.Listeners = []gatewayv1.ListenerEntry{
				{Name: "a", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &a}, {Name: "b", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &b},
			}
			in.Unknown = map[types.UID][]string{"set": test.unknown}
			var served []string
			for _, l := range Build(in).Listeners {
				if l.Valid {
					served = append(served, l.Key())
				}
			}
			if diff := cmp.Diff(test.served, served); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// BenchmarkSets builds the graph of a Gateway with many listeners in sets: who may add sets may add many.
func BenchmarkSets(b *testing.B) {
	in := attacked()
	in.ListenerSets = nil
	for i := range 100 {
		set := attacked().ListenerSets[0]
		set.Name, set.Spec.Listeners = fmt.Sprintf("s%d", i), nil
		for k := range 64 {
			host := gatewayv1.Hostname(fmt.Sprintf("h%d.s%d.example.com", k, i))
			set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry{
				Name: gatewayv1.SectionName(fmt.Sprint(k)), Port: 443, Protocol: gatewayv1.HTTPSProtocolType, Hostname: &host,
				TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "own"}}},
			})
		}
		in.ListenerSets = append(in.ListenerSets, set)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := len(Build(in).Table(map[model.ServiceName]model.Service{}).Listeners); got != 6402 {
			b.Fatalf("%d listeners", got)
		}
	}
}

// Whoever may make a ListenerSet opens so many ports and no more, and keeps nobody from a port that is open.
func TestTheSetsOfAGatewayOpenNoMorePortsThanItTakes(t *testing.T) {
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}, Spec: gatewayv1.GatewaySpec{
		Listeners:        []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
	}}
	set := func(name string, listeners ...gatewayv1.ListenerEntry) *gatewayv1.ListenerSet {
		return &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)}, Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace("infra")), Name: "edge"}, Listeners: listeners,
		}}
	}
	var sets []*gatewayv1.ListenerSet
	for i := range 4 {
		var greedy []gatewayv1.ListenerEntry
		for k := range 64 {
			greedy = append(greedy, gatewayv1.ListenerEntry{Name: gatewayv1.SectionName(fmt.Sprintf("l%d", k)), Port: gatewayv1.PortNumber(1000 + 64*i + k), Protocol: gatewayv1.HTTPProtocolType})
		}
		sets = append(sets, set(fmt.Sprintf("greedy-%d", i), greedy...))
	}
	sets = append(sets, set("later", gatewayv1.ListenerEntry{Name: "shop", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: new(gatewayv1.Hostname("shop.example.com"))}))

	g := Build(Input{Gateway: gateway, ListenerSets: sets})
	ports, refused := map[int32]bool{}, 0
	for _, l := range g.Listeners {
		if l.Valid {
			ports[l.Port] = true
			continue
		}
		refused++
		accepted := l.Conditions[0]
		if accepted.Reason != string(gatewayv1.ListenerEntryReasonTooManyListeners) || accepted.Status != metav1.ConditionFalse || l.Conflict() != "" {
			t.Errorf("listener %s: %s %s, conflict %q", l.Key(), accepted.Status, accepted.Reason, l.Conflict())
		}
	}
	if len(ports) != maxPorts || refused != 4*64+1-maxPorts {
		t.Errorf("%d ports are open and %d listeners are refused, want %d and %d", len(ports), refused, maxPorts, 4*64+1-maxPorts)
	}
	if last := g.Listeners[len(g.Listeners)-1]; !last.Valid {
		t.Errorf("a later set cannot use a port that is open: %s", last.Why())
	}
	if table := g.Table(nil); len(table.Listeners) != maxPorts+1 {
		t.Errorf("the table has %d listeners, want %d", len(table.Listeners), maxPorts+1)
	}
}
