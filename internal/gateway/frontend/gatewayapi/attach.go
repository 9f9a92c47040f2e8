package gatewayapi

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// attach finds the listeners that each parentRef of a route leads to, and counts the route there.
func (b *builder) attach(g *Graph, route *Route) {
	b.judge(route)
	attached, first := map[int]bool{}, []int(nil)
	for i, ref := range route.refs {
		if !b.isParent(route, ref) {
			continue
		}
		found, f := b.listenersOf(g, route, ref)
		if unknown := route.unknownRefs[i]; unknown != nil {
			found, f = nil, unknown
		}
		if f == nil {
			f = route.unsupported()
		}
		parent := &Parent{Ref: ref, Listeners: found, Behind: b.behind(g, route, found)}
		first = append(first, found...)
		parent.conclude(route, f)
		route.Parents = append(route.Parents, parent)
		if !parent.Accepted() {
			continue
		}
		for _, i := range found {
			attached[i] = true
		}
	}
	for _, i := range first {
		b.firsts[i] = true
	}
	for i := range attached {
		g.Listeners[i].Attached++
	}
}

// isParent reports whether a parentRef names the Gateway, or a ListenerSet that names it.
func (b *builder) isParent(route *Route, ref gatewayv1.ParentReference) bool {
	if IsParent(ref, route.Name.Namespace, types.NamespacedName{Namespace: b.in.Gateway.Namespace, Name: b.in.Gateway.Name}) {
		return true
	}
	return b.setOf(route, ref) != nil
}

// setOf is the ListenerSet that a parentRef names, nil if it names none of the Gateway.
func (b *builder) setOf(route *Route, ref gatewayv1.ParentReference) *Set {
	name, is := SetOf(ref, route.Name.Namespace)
	if !is {
		return nil
	}
	return b.setBy[name]
}

// IsParent reports whether a parentRef of a route in a namespace names a Gateway.
func IsParent(ref gatewayv1.ParentReference, namespace string, gateway types.NamespacedName) bool {
	name, is := GatewayOf(ref, namespace)
	return is && name == gateway
}

// listenersOf finds the listeners that a route attaches to by a parentRef: of the Gateway or of the ListenerSet, never of
// both. The checks are in the order in which the reasons are defined: the first one that leaves no listener is told.
func (b *builder) listenersOf(g *Graph, route *Route, ref gatewayv1.ParentReference) ([]int, *fault) {
	set, parent := b.setOf(route, ref), fmt.Sprintf("Gateway %q", b.in.Gateway.Name)
	if set != nil {
		parent = fmt.Sprintf("ListenerSet %q", set.Name.Name)
		if set.refused != nil {
			return nil, faultf(gatewayv1.RouteReasonNoMatchingParent, "parentRefs: %s has no listeners: %s", parent, set.refused.message)
		}
	}
	first, end := g.places(set)
	var found []int
	for i := first; i < end; i++ {
		l := g.Listeners[i]
		if (ref.SectionName == nil || *ref.SectionName == l.Name) && (ref.Port == nil || *ref.Port == l.Port) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return nil, faultf(gatewayv1.RouteReasonNoMatchingParent, "parentRefs: %s has no listener%s", parent, selected(ref))
	}
	var not *fault
	found = slices.DeleteFunc(found, func(i int) bool {
		f := b.allows(g.Listeners[i], route)
		if f != nil && not == nil {
			not = f
		}
		return f != nil
	})
	if len(found) == 0 {
		return nil, not
	}
	found = slices.DeleteFunc(found, func(i int) bool { return len(served(g.Listeners[i].Hostname, route.hostnames)) == 0 })
	if len(found) == 0 {
		return nil, faultf(gatewayv1.RouteReasonNoMatchingListenerHostname, "hostnames: no listener%s that allows the route has a name in common with it", selected(ref))
	}
	return found, nil
}

// selected describes which listeners a parentRef is about.
func selected(ref gatewayv1.ParentReference) string {
	text := ""
	if ref.SectionName != nil {
		text = fmt.Sprintf(" with the name %q", *ref.SectionName)
	}
	if ref.Port != nil {
		text += fmt.Sprintf(" on port %d", *ref.Port)
	}
	return text
}

// allows tells why a listener does not allow a route.
func (b *builder) allows(l *Listener, route *Route) *fault {
	if !slices.ContainsFunc(l.Kinds, func(kind gatewayv1.RouteGroupKind) bool { return string(kind.Kind) == string(route.Kind) }) {
		return faultf(gatewayv1.RouteReasonNotAllowedByListeners, "parentRefs: listener %q does not allow the kind %s", l.Name, route.Kind)
	}
	namespace := route.Name.Namespace
	allowed := false
	switch l.from {
	case gatewayv1.NamespacesFromAll:
		allowed = true
	case gatewayv1.NamespacesFromSame:
		allowed = namespace == l.owner.namespace
	default:
		allowed = l.selector.Matches(b.in.labelsOf(namespace))
	}
	if !allowed {
		return faultf(gatewayv1.RouteReasonNotAllowedByListeners, "parentRefs: listener %q does not allow routes of namespace %q", l.Name, namespace)
	}
	return nil
}

// unsupported is why nothing of a route can be served as it is written.
func (r *Route) unsupported() *fault {
	for i := range r.rules {
		if r.rules[i].unsupported == nil {
			return nil
		}
	}
	if len(r.rules) == 0 {
		return nil
	}
	return r.rules[0].unsupported
}

// conclude makes the conditions of a parentRef.
func (p *Parent) conclude(route *Route, f *fault) {
	c := conditions{route.Generation}
	p.accepted = c.condition(string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteReasonAccepted), "the route is attached to the Gateway", f)
	p.Conditions = []metav1.Condition{
		p.accepted,
		c.condition(string(gatewayv1.RouteConditionResolvedRefs), string(gatewayv1.RouteReasonResolvedRefs), "everything that the route refers to can be used", route.unresolved()),
	}
	if dropped := route.dropped(); dropped != nil && p.Accepted() {
		p.Conditions = append(p.Conditions, c.yes(string(gatewayv1.RouteConditionPartiallyInvalid), dropped.reason, dropped.message))
	}
}

// unresolved is the first reference of a route that cannot be used.
func (r *Route) unresolved() *fault {
	for i := range r.rules {
		if f := r.rules[i].unresolved; f != nil {
			return f
		}
	}
	return nil
}

// dropped names the first rule that is not served as it is written, beside others that are.
func (r *Route) dropped() *fault {
	for i := range r.rules {
		f := r.rules[i].unsupported
		if f == nil {
			continue
		}
		becomes := "its requests are answered with 500: "
		if !r.rules[i].known() {
			becomes = "it is not known which requests it is for, so it gets none: "
		}
		return &fault{reason: f.reason, message: "Dropped Rule: " + becomes + f.message}
	}
	return nil
}

// conclude makes the conditions of the Gateway. Listeners of ListenerSets are told there.
func (b *builder) conclude(g *Graph) {
	c := conditions{b.generation}
	served, notResolved := 0, ""
	var bad *Listener
	for _, l := range g.Of(nil) {
		if l.accepted == nil && l.conflict == nil {
			served++
		} else if bad == nil {
			bad = l
		}
		if l.resolved != nil && notResolved == "" {
			notResolved = fmt.Sprintf("listener %q: %s", l.Name, l.resolved.message)
		}
	}
	const accepted = string(gatewayv1.GatewayConditionAccepted)
	switch {
	case b.parameters() != nil:
		g.Accepted = c.condition(accepted, "", "", b.parameters())
	case b.addresses() != nil:
		g.Accepted = c.condition(accepted, "", "", b.addresses())
	case served == 0:
		g.Accepted = c.no(accepted, string(gatewayv1.GatewayReasonListenersNotValid), "no listener can be served: "+bad.told())
	case bad != nil:
		g.Accepted = c.yes(accepted, string(gatewayv1.GatewayReasonListenersNotValid), "there is a listener that cannot be served: "+bad.told())
	default:
		g.Accepted = c.yes(accepted, string(gatewayv1.GatewayReasonAccepted), "the Gateway is served by Slipway")
	}
	const resolved = string(gatewayv1.GatewayConditionResolvedRefs)
	g.ResolvedRefs = c.yes(resolved, string(gatewayv1.GatewayReasonResolvedRefs), "everything that the Gateway refers to can be used")
	if notResolved != "" {
		g.ResolvedRefs = c.no(resolved, string(gatewayv1.GatewayReasonListenersNotResolved), notResolved)
	}
	if f := b.showCertificate(g); f != nil {
		g.ResolvedRefs = c.no(resolved, f.reason, f.message)
	}
	if l := g.insecure(); l != nil {
		insecure := c.yes(string(gatewayv1.GatewayConditionInsecureFrontendValidationMode), string(gatewayv1.GatewayReasonConfigurationChanged),
			fmt.Sprintf("listener %q lets clients in whose certificate is not valid, or missing", l.Key()))
		g.Insecure = &insecure
	}
}

// told says what is wrong with a listener.
func (l *Listener) told() string {
	if l == nil {
		return "the Gateway has none"
	}
	return fmt.Sprintf("listener %q: %s", l.Name, l.Why())
}

// parameters tells why the parameters cannot be met.
func (b *builder) parameters() *fault {
	if b.in.ParametersProblem == "" {
		return nil
	}
	return faultf(gatewayv1.GatewayReasonInvalidParameters, "%s", b.in.ParametersProblem)
}

// addresses tells which address of the spec is of a type that is not supported.
func (b *builder) addresses() *fault {
	for i, address := range b.in.Gateway.Spec.Addresses {
		if kind := value(address.Type, gatewayv1.IPAddressType); kind != gatewayv1.IPAddressType {
			return faultf(gatewayv1.GatewayReasonUnsupportedAddress, "spec.addresses[%d].type: %q is not supported; IPAddress is", i, kind)
		}
	}
	return nil
}
