package watch

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// listenerSet is a ListenerSet that names the Gateway.
type listenerSet struct {
	of *gatewayv1.ListenerSet
	// unknown are fields that this program does not know.
	unknown []string
	// wrong says why it could not be parsed. It then has no listeners.
	wrong string
}

// name is that of the set.
func (l *listenerSet) name() types.NamespacedName {
	return types.NamespacedName{Namespace: l.of.Namespace, Name: l.of.Name}
}

// keepSet returns what to keep of a ListenerSet: nothing if it names another Gateway.
func keepSet(own types.NamespacedName) func(*object) *listenerSet {
	return func(in *object) *listenerSet {
		kept := &listenerSet{of: &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: in.Name, UID: in.UID, Generation: in.Generation, CreationTimestamp: in.CreationTimestamp,
		}}}
		var parent struct {
			ParentRef gatewayv1.ParentGatewayReference `json:"parentRef"`
		}
		if json.UnmarshalCaseSensitivePreserveInts(in.Spec.Raw, &parent) != nil {
			return nil
		}
		kept.of.Spec.ParentRef = parent.ParentRef
		if name, is := gatewayapi.GatewayOfSet(kept.of); !is || name != own {
			return nil
		}
		spec := gatewayv1.ListenerSetSpec{}
		unknown, err := readStrictly(in.Spec.Raw, &spec)
		if err != nil {
			kept.wrong = err.Error()
			return kept
		}
		kept.of.Spec, kept.unknown = spec, unknown
		return kept
	}
}

// sameSet compares what is kept of a set. It is nil for a set of another Gateway.
func sameSet(a, b *listenerSet) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.of.UID == b.of.UID && a.of.Generation == b.of.Generation
}

// setsOfGateway returns the ListenerSets that name the Gateway, in a stable order. From then on
// routes that name them matter.
func (s *GatewaySource) setsOfGateway() []*listenerSet {
	var found []*listenerSet
	names := map[types.NamespacedName]bool{}
	s.sets.each(s.everyone, func(_ types.NamespacedName, l *listenerSet) {
		if l != nil {
			found = append(found, l)
			names[l.name()] = true
		}
	})
	slices.SortFunc(found, func(a, b *listenerSet) int {
		return cmp.Or(cmp.Compare(a.of.Namespace, b.of.Namespace), cmp.Compare(a.of.Name, b.of.Name))
	})
	s.relevantSets.Store(&names) // before the routes are read, so that no later change is missed
	return found
}

// concerns reports whether a route names the Gateway or one of its sets.
func (s *GatewaySource) concerns(r *route) bool {
	if r == nil {
		return false
	}
	sets := *s.relevantSets.Load()
	return r.own || slices.ContainsFunc(r.sets, func(name types.NamespacedName) bool { return sets[name] })
}

// base is what decides which ListenerSets are allowed, and what they may use.
func (s *GatewaySource) base(next *state) gatewayapi.Input {
	in := gatewayapi.Input{Gateway: next.gateway, Namespaces: s.labels(next.namespaces), Only: s.options.Namespaces}
	for _, l := range next.sets {
		in.ListenerSets = append(in.ListenerSets, l.of)
	}
	s.grants.each(s.everyone, func(_ types.NamespacedName, g grant) { in.Grants = append(in.Grants, g.of) })
	return in
}

// selectsNamespaces reports whether the Gateway allows routes or ListenerSets by the labels of
// their namespaces, or a set that it allows does so.
func selectsNamespaces(gateway *gatewayv1.Gateway, sets []*listenerSet) bool {
	if slices.ContainsFunc(gateway.Spec.Listeners, selects) {
		return true
	}
	if len(sets) == 0 || gateway.Spec.AllowedListeners == nil || gateway.Spec.AllowedListeners.Namespaces == nil {
		return false
	}
	if value(gateway.Spec.AllowedListeners.Namespaces.From) == gatewayv1.NamespacesFromSelector {
		return true
	}
	in := gatewayapi.Input{Gateway: gateway}
	for _, l := range sets {
		in.ListenerSets = append(in.ListenerSets, l.of)
	}
	return slices.ContainsFunc(gatewayapi.AllowedSets(in), func(set *gatewayv1.ListenerSet) bool {
		return slices.ContainsFunc(set.Spec.Listeners, func(l gatewayv1.ListenerEntry) bool { return selects(gatewayv1.Listener(l)) })
	})
}

// problemsOfSets are those of ListenerSets that could not be parsed.
func problemsOfSets(sets []*listenerSet) []document.Problem {
	var list []document.Problem
	for _, l := range sets {
		if l.wrong != "" {
			name := l.name().String()
			list = append(list, document.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("ListenerSet %s", name), Reason: string(gatewayv1.ListenerSetReasonInvalid), Message: l.wrong,
			})
		}
	}
	return list
}
