package why

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/health"
)

// These are reasons that why gives where no status does.
const (
	reasonNotFound    = "NotFound"
	reasonNotAnswered = "NotAnswered"
)

// parentView is what a controller says of a route at one of its parents.
type parentView struct {
	// Route is kind/name of the route, and Parent that of its parent. With the namespace if it is another one.
	Route  string `json:"route,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Listener is which listeners are meant. Empty: all.
	Listener string `json:"listener,omitempty"`
	// Controller is who says so. Empty: nobody has said anything.
	Controller string `json:"controller,omitempty"`
	// Accepted, Resolved and Live are the statuses of these conditions. Empty: nothing is said.
	Accepted string       `json:"accepted,omitempty"`
	Resolved string       `json:"resolved,omitempty"`
	Live     string       `json:"live,omitempty"`
	State    health.State `json:"state"`
	Reason   string       `json:"reason,omitempty"`
	Message  string       `json:"message,omitempty"`
}

// parents tells of each parent of a route what is said of it. With a Gateway it tells of that one alone.
func (s *standardFindings) parents(route *standardRoute, only *gatewayv1.Gateway) []parentView {
	var views []parentView
	for _, ref := range route.refs {
		if only != nil && !gatewayapi.IsParent(ref, route.Namespace, types.NamespacedName{Namespace: only.Namespace, Name: only.Name}) {
			continue
		}
		answered := false
		for i := range route.status {
			if sameParent(ref, route.status[i].ParentRef, route.Namespace) {
				views, answered = append(views, s.parent(route, ref, &route.status[i])), true
			}
		}
		if !answered {
			views = append(views, s.parent(route, ref, nil))
		}
	}
	return views
}

// sameParent compares references. Some controllers write into status what the spec leaves out.
func sameParent(a, b gatewayv1.ParentReference, namespace string) bool {
	return parentRef(a, namespace, "") == parentRef(b, namespace, "") && selectedListeners(a) == selectedListeners(b)
}

// parentRef formats the name of a parent, with its namespace where it is not the one that is looked from.
func parentRef(ref gatewayv1.ParentReference, namespace, from string) string {
	group, kind := gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind(command.KindGateway)
	if ref.Group != nil {
		group = *ref.Group
	}
	if ref.Kind != nil {
		kind = *ref.Kind
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	name := string(kind)
	if group != gatewayv1.GroupName {
		name = strings.TrimSuffix(name+"."+string(group), ".")
	}
	return refFrom(from, name, types.NamespacedName{Namespace: namespace, Name: string(ref.Name)})
}

// refFrom formats the name of an object as somebody in a namespace would write it.
func refFrom(namespace, kind string, name types.NamespacedName) string {
	if name.Namespace == namespace {
		return command.ObjectRef(kind, name.Name)
	}
	return command.ObjectRef(kind, name.String())
}

// selectedListeners tells which listeners a parentRef means: name, :port, or both. Empty: all.
func selectedListeners(ref gatewayv1.ParentReference) string {
	text := ""
	if ref.SectionName != nil {
		text = string(*ref.SectionName)
	}
	if ref.Port != nil {
		text += fmt.Sprintf(":%d", *ref.Port)
	}
	return text
}

func (s *standardFindings) parent(route *standardRoute, ref gatewayv1.ParentReference, entry *gatewayv1.RouteParentStatus) parentView {
	view := parentView{Parent: parentRef(ref, route.Namespace, s.namespace), Listener: selectedListeners(ref), State: health.Healthy}
	if entry != nil {
		view.Controller = string(entry.ControllerName)
		view.Accepted = conditionStatus(entry.Conditions, string(gatewayv1.RouteConditionAccepted))
		view.Resolved = conditionStatus(entry.Conditions, string(gatewayv1.RouteConditionResolvedRefs))
		view.Live = conditionStatus(entry.Conditions, gatewayapi.ConditionLive)
	}
	view.judge(s, route, ref, entry)
	return view
}

func conditionStatus(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return string(c.Status)
	}
	return ""
}

// judge finds what is wrong: first what keeps a controller from saying anything that counts, then what it says.
func (v *parentView) judge(s *standardFindings, route *standardRoute, ref gatewayv1.ParentReference, entry *gatewayv1.RouteParentStatus) {
	name, isGateway := gatewayapi.GatewayOf(ref, route.Namespace)
	gateway, read := s.gateways[name]
	if isGateway && read && gateway == nil {
		v.fail(health.Failed, reasonNotFound, "does not exist")
		return
	}
	var accepted *metav1.Condition
	if entry != nil {
		accepted = meta.FindStatusCondition(entry.Conditions, string(gatewayv1.RouteConditionAccepted))
	}
	switch {
	case accepted == nil || accepted.Status == metav1.ConditionUnknown:
		state, message := s.unanswered(isGateway, gateway, "the route")
		v.fail(state, reasonNotAnswered, message)
		return
	case accepted.ObservedGeneration > 0 && accepted.ObservedGeneration < route.Generation:
		v.fail(health.Progressing, health.ReasonNotObserved, fmt.Sprintf(
			"what its controller says is about generation %d of the route, and it is at %d; if that lasts, see whether the controller runs",
			accepted.ObservedGeneration, route.Generation))
		return
	case accepted.Status == metav1.ConditionFalse:
		v.fail(health.Failed, accepted.Reason, accepted.Message)
		return
	}
	for _, bad := range []struct {
		kind   string
		status metav1.ConditionStatus
	}{
		{string(gatewayv1.RouteConditionResolvedRefs), metav1.ConditionFalse},
		{string(gatewayv1.RouteConditionPartiallyInvalid), metav1.ConditionTrue},
		{gatewayapi.ConditionLive, metav1.ConditionFalse},
	} {
		c := meta.FindStatusCondition(entry.Conditions, bad.kind)
		if c == nil || c.Status != bad.status {
			continue
		}
		state := health.Failed
		if bad.kind == gatewayapi.ConditionLive && !slices.Contains(lasting, c.Reason) {
			state = health.Progressing // the pods may be about to serve it
		}
		v.fail(state, c.Reason, c.Message)
		return
	}
}

// lasting are reasons of ConditionLive that do not pass by themselves.
var lasting = []string{gatewayapi.ReasonPolicyInvalid, gatewayapi.ReasonAuthNotPossible, gatewayapi.ReasonOlderRouteFirst}

func (v *parentView) fail(state health.State, reason, message string) {
	v.State, v.Reason, v.Message = state, reason, message
}

// unanswered tells why no controller has said anything of an object at a Gateway. gateway is nil if it was not read.
func (s *standardFindings) unanswered(isGateway bool, gateway *gatewayv1.Gateway, what string) (health.State, string) {
	switch {
	case !isGateway:
		return health.Failed, "no controller has said anything of " + what + ": it is no Gateway, and Slipway serves nothing else"
	case gateway == nil:
		return health.Failed, "no controller has said anything of " + what
	}
	name := string(gateway.Spec.GatewayClassName)
	class, read := s.classes[name]
	switch {
	case !read:
		return health.Failed, fmt.Sprintf("the controller of GatewayClass %q has said nothing of %s", name, what)
	case class == nil:
		return health.Failed, fmt.Sprintf("no controller has said anything of %s: GatewayClass %q does not exist", what, name)
	case class.Spec.ControllerName != gatewayapi.Controller:
		return health.Failed, fmt.Sprintf(
			"GatewayClass %q is not Slipway's, and its controller %q has said nothing of %s: see whether that runs", name,
			class.Spec.ControllerName, what)
	}
	return health.Progressing, fmt.Sprintf(
		"the operator has said nothing of %s yet; if that lasts, see whether it runs, and whether it is limited to other namespaces", what)
}
