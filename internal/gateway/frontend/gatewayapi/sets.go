package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// setKind is the kind of listeners in an object of their own.
const setKind = "ListenerSet"

// Set is a ListenerSet that names the Gateway, and what becomes of it.
type Set struct {
	UID        types.UID
	Generation int64
	Name       types.NamespacedName
	// Accepted is a condition of it.
	Accepted metav1.Condition

	of *gatewayv1.ListenerSet
	// refused is why the Gateway does not allow it. It then has no listeners in the graph.
	refused *fault
	// first is the place of its first listener in the graph, and end the one after its last.
	first, end int
}

// Of are the listeners of a set, or the Gateway's own if it is nil.
func (g *Graph) Of(set *Set) []*Listener {
	first, end := g.places(set)
	return g.Listeners[first:end]
}

// places is where the listeners of a set, or the Gateway's own, are.
func (g *Graph) places(set *Set) (first, end int) {
	if set != nil {
		return set.first, set.end
	}
	end = slices.IndexFunc(g.Listeners, func(l *Listener) bool { return l.Set != nil })
	if end < 0 {
		end = len(g.Listeners)
	}
	return 0, end
}

// judgeSets finds the sets that name the Gateway, brings them into order, and tells which of them are allowed.
func (b *builder) judgeSets() {
	b.setBy = map[types.NamespacedName]*Set{}
	own := types.NamespacedName{Namespace: b.in.Gateway.Namespace, Name: b.in.Gateway.Name}
	for _, of := range b.in.ListenerSets {
		if name, is := GatewayOfSet(of); !is || name != own {
			continue
		}
		set := &Set{UID: of.UID, Generation: of.Generation, Name: types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, of: of}
		set.refused = b.allowsSet(of)
		b.sets, b.setBy[set.Name] = append(b.sets, set), set
	}
	slices.SortStableFunc(b.sets, func(a, b *Set) int {
		return cmp.Or(
			a.of.CreationTimestamp.Compare(b.of.CreationTimestamp.Time),
			cmp.Compare(a.Name.Namespace, b.Name.Namespace),
			cmp.Compare(a.Name.Name, b.Name.Name),
		)
	})
}

// allowsSet tells why the Gateway does not allow a set.
func (b *builder) allowsSet(of *gatewayv1.ListenerSet) *fault {
	const reason, field = gatewayv1.ListenerSetReasonNotAllowed, "spec.allowedListeners.namespaces"
	from, in := gatewayv1.NamespacesFromNone, gatewayv1.ListenerNamespaces{}
	if allowed := b.in.Gateway.Spec.AllowedListeners; allowed != nil {
		in = value(allowed.Namespaces, in)
		from = value(in.From, from)
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return nil
	case gatewayv1.NamespacesFromSame:
		if of.Namespace == b.in.Gateway.Namespace {
			return nil
		}
	case gatewayv1.NamespacesFromSelector:
		// A selector that is missing or wrong selects nothing.
		selector, err := b.in.selects(in.Selector)
		if err == nil && selector.Matches(b.in.labelsOf(of.Namespace)) {
			return nil
		}
		if err != nil && len(b.in.Only) > 0 {
			return faultf(reason, "%s.selector of Gateway %q cannot be used: %v", field, b.in.Gateway.Name, err)
		}
	}
	return faultf(reason, "%s of Gateway %q does not allow ListenerSets of namespace %q", field, b.in.Gateway.Name, of.Namespace)
}

// listenersOfSets judges the listeners of the sets. own are those of the Gateway.
func (b *builder) listenersOfSets(own []*Listener) []*Listener {
	held := newHeld(own)
	var all []*Listener
	for _, set := range b.sets {
		set.first = len(own) + len(all)
		for i := 0; set.refused == nil && i < len(set.of.Spec.Listeners); i++ {
			spec := gatewayv1.Listener(set.of.Spec.Listeners[i])
			l := b.listener(owner{kind: setKind, namespace: set.Name.Namespace, uid: set.UID, generation: set.Generation}, i, &spec)
			l.Set = set
			if full := held.full(l); full != nil {
				l.accepted, l.barred = full, true
			} else {
				l.conflict = held.take(l)
				l.barred = l.conflict != nil
			}
			all = append(all, l)
		}
		set.end = len(own) + len(all)
	}
	return all
}

// maxPorts is how many ports a Gateway may have before its ListenerSets open no further one. Each costs the Service and every
// pod something, so who may make a ListenerSet could otherwise keep the Service of others from being written.
const maxPorts = 128

// listenerAddress is what only one listener can have.
type listenerAddress struct {
	socket
	hostname string
}

// held is what listeners hold so that no listener of a later set gets it, whether they are valid or not: who is missing a
// certificate, or is refused by a pod of another version, does not lose its requests to others for it.
type held struct {
	protocols map[socket]gatewayv1.ProtocolType
	hostnames map[listenerAddress]bool
}

func newHeld(own []*Listener) held {
	h := held{protocols: map[socket]gatewayv1.ProtocolType{}, hostnames: map[listenerAddress]bool{}}
	for _, l := range own {
		h.hold(l)
	}
	return h
}

// hold notes what a listener holds. A protocol that is not supported holds nothing: its port is not opened.
func (h held) hold(l *Listener) {
	if kindsOf[l.Protocol] == nil {
		return
	}
	if _, has := h.protocols[l.socket()]; !has {
		h.protocols[l.socket()] = l.Protocol
	}
	h.hostnames[listenerAddress{l.socket(), l.Hostname}] = true
}

// full tells that a listener of a set would need one port more than the sets of a Gateway get.
func (h held) full(l *Listener) *fault {
	if _, open := h.protocols[l.socket()]; open || len(h.protocols) < maxPorts || l.accepted != nil {
		return nil
	}
	return faultf(gatewayv1.ListenerEntryReasonTooManyListeners, "port: the listeners before this one are on %d ports, and no more are opened for ListenerSets", maxPorts)
}

// take notes what a listener of a set holds, or tells what of it an earlier one has. It does not tell which one that is: who
// sees the set need not see that one.
func (h held) take(l *Listener) *fault {
	has, taken := h.protocols[l.socket()]
	if kindsOf[l.Protocol] == nil {
		return nil // its port is not opened
	}
	if taken && speech(has) != speech(l.Protocol) {
		return faultf(gatewayv1.ListenerReasonProtocolConflict, "port: a listener that comes before this one speaks %s on port %d, so %s cannot be spoken there", has, l.Port, l.Protocol)
	}
	if h.hostnames[listenerAddress{l.socket(), l.Hostname}] {
		return faultf(gatewayv1.ListenerReasonHostnameConflict, "hostname: a listener that comes before this one has the same port and hostname")
	}
	h.hold(l)
	return nil
}

// nameOf is how another listener is called in the status of this one. Who sees a set need not see others.
func (l *Listener) nameOf(other *Listener) string {
	if l.Set != nil && other.Set != l.Set {
		return "another listener of the Gateway"
	}
	return fmt.Sprintf("listener %q", other.Key())
}

// concludeSets makes the conditions of the sets.
func (b *builder) concludeSets(g *Graph) {
	for _, set := range g.Sets {
		const accepted = string(gatewayv1.ListenerSetConditionAccepted)
		c, valid := conditions{set.Generation}, 0
		var bad *Listener
		for _, l := range g.Of(set) {
			if l.Valid {
				valid++
			} else if bad == nil {
				bad = l
			}
		}
		switch {
		case set.refused != nil:
			set.Accepted = c.condition(accepted, "", "", set.refused)
		case g.Accepted.Status != metav1.ConditionTrue:
			set.Accepted = c.no(accepted, string(gatewayv1.ListenerSetReasonParentNotAccepted), fmt.Sprintf("spec.parentRef: Gateway %q is not accepted", b.in.Gateway.Name))
		case valid == 0 && bad == nil:
			set.Accepted = c.no(accepted, string(gatewayv1.ListenerSetReasonListenersNotValid), "the ListenerSet has no listener")
		case valid == 0:
			set.Accepted = c.no(accepted, string(gatewayv1.ListenerSetReasonListenersNotValid), "no listener can be served: "+bad.told())
		case bad != nil:
			set.Accepted = c.yes(accepted, string(gatewayv1.ListenerSetReasonListenersNotValid), "there is a listener that cannot be served: "+bad.told())
		default:
			set.Accepted = c.yes(accepted, string(gatewayv1.ListenerSetReasonAccepted), "the listeners are served by the Gateway")
		}
		if set.Accepted.Status == metav1.ConditionTrue {
			g.AttachedSets++
		}
	}
}
