package gateway

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// maxParents is how many entries the status of a route holds.
const maxParents = 32

// ofParents are the types of the conditions in an entry that we state, or take away.
var ofParents = []string{
	string(gatewayv1.RouteConditionAccepted), string(gatewayv1.RouteConditionResolvedRefs), string(gatewayv1.RouteConditionPartiallyInvalid), ConditionLive,
}

// parentStatus is our status of one parentRef of a route.
type parentStatus struct {
	ref        gatewayv1.ParentReference
	conditions []metav1.Condition
}

// owns reports whether the status of a parentRef of a route in a namespace is ours.
type owns func(ref gatewayv1.ParentReference, namespace string) bool

// ofGateway are the parentRefs that name a Gateway or one of these ListenerSets.
func ofGateway(gateway types.NamespacedName, sets []*gatewayv1.ListenerSet) owns {
	names := map[types.NamespacedName]bool{}
	for _, set := range sets {
		names[types.NamespacedName{Namespace: set.Namespace, Name: set.Name}] = true
	}
	return func(ref gatewayv1.ParentReference, namespace string) bool {
		name, is := gatewayapi.SetOf(ref, namespace)
		return is && names[name] || gatewayapi.IsParent(ref, namespace, gateway)
	}
}

// parentStatuses returns our statuses of a route, one for each parentRef that names the Gateway or one of its ListenerSets.
func (s *scope) parentStatuses(route *gatewayapi.Route) []parentStatus {
	var all []parentStatus
	for _, parent := range route.Parents {
		all = append(all, parentStatus{ref: parent.Ref, conditions: append(slices.Clone(parent.Conditions), s.live(route, parent))})
	}
	return all
}

func (s *scope) live(route *gatewayapi.Route, parent *gatewayapi.Parent) metav1.Condition {
	if !parent.Accepted() {
		return status.False(ConditionLive, ReasonNotAccepted, "the Gateway does not accept the route")
	}
	if l := s.unserved(parent); l != nil {
		return status.False(ConditionLive, ReasonListenerInvalid, fmt.Sprintf("no listener that the route is attached to can be served: listener %q: %s", l.Key(), l.Why()))
	}
	if refused := parent.Refused; refused != nil {
		return status.False(ConditionLive, refused.Reason, refused.Message)
	}
	if lack := s.routeLack(route); lack != nil {
		return status.False(ConditionLive, lack.reason, lack.message)
	}
	if parent.Behind {
		return status.False(ConditionLive, ReasonOlderRouteFirst, "an older route gets everything that comes to the listeners that the route is attached to")
	}
	const live = "every pod that is ready serves this generation of the route"
	switch rivals := parent.Rivals; {
	case rivals.All:
		return status.False(ConditionLive, ReasonOlderRouteFirst, fmt.Sprintf("no request comes to the route, because others that come first have its matches: %s", rivals.First))
	case rivals.First != "":
		return status.True(ConditionLive, ReasonLive, fmt.Sprintf("%s; but %s, which comes first", live, rivals.First))
	default:
		return status.True(ConditionLive, ReasonLive, live)
	}
}

// unserved is the first listener that a route is attached to by a parentRef, nil where one of them can be served.
func (s *scope) unserved(parent *gatewayapi.Parent) *gatewayapi.Listener {
	var first *gatewayapi.Listener
	for _, i := range parent.Listeners {
		l := s.graph.Listeners[i]
		if l.Valid {
			return nil
		}
		if first == nil {
			first = l
		}
	}
	return first
}

// entries returns the entries of a route with what we say of some parents. Those of other controllers and of other parents stay as
// they are, and where they are. No statuses: ours of these parents go.
func entries(of []gatewayv1.RouteParentStatus, namespace string, ours owns, all []parentStatus, generation int64, now metav1.Time) []gatewayv1.RouteParentStatus {
	left := slices.Clone(all)
	next := make([]gatewayv1.RouteParentStatus, 0, len(of)+len(all))
	for i := range of {
		entry := of[i]
		if entry.ControllerName != Controller || !ours(entry.ParentRef, namespace) {
			next = append(next, entry)
			continue
		}
		at := slices.IndexFunc(left, func(one parentStatus) bool { return reflect.DeepEqual(one.ref, entry.ParentRef) })
		if at < 0 {
			continue // its parentRef has gone, or it is there twice
		}
		entry.Conditions = conditionsOf(entry.Conditions, left[at].conditions, generation, now)
		next = append(next, entry)
		left = slices.Delete(left, at, at+1)
	}
	for _, one := range left {
		if len(next) == maxParents {
			break
		}
		next = append(next, gatewayv1.RouteParentStatus{ParentRef: one.ref, ControllerName: Controller, Conditions: conditionsOf(nil, one.conditions, generation, now)})
	}
	return next
}

// conditionsOf are the stated conditions, after those in the entry that are somebody else's.
func conditionsOf(are, stated []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	var next []metav1.Condition
	for _, c := range are {
		if !slices.Contains(ofParents, c.Type) && meta.FindStatusCondition(stated, c.Type) == nil {
			next = append(next, c)
		}
	}
	return append(next, status.Merge(are, stated, generation, now)...)
}
