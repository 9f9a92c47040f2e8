package why

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/cli/command"
	standarddesired "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/health"
)

// These bound how many routes of a Gateway are shown, so that the cause stays on the screen.
const (
	maxRefusedRoutes = 10
	maxShownRoutes   = 20
)

// gatewayDetails is what why shows of a Gateway besides its causes.
type gatewayDetails struct {
	Class string `json:"class"`
	// Controller is who serves the class. Empty: that could not be read, or there is no such class.
	Controller string `json:"controller,omitempty"`
	// Accepted and Programmed are the statuses of these conditions. Empty: nothing is said.
	Accepted   string         `json:"accepted,omitempty"`
	Programmed string         `json:"programmed,omitempty"`
	Addresses  []string       `json:"addresses,omitempty"`
	Listeners  []listenerView `json:"listeners"`
	// Routes are those that name the Gateway, those with a problem first.
	Routes []parentView `json:"routes"`
	// RoutesLeft is how many more there are.
	RoutesLeft int `json:"routesLeft,omitempty"`
}

// listenerView is a listener of a Gateway.
type listenerView struct {
	Name     string `json:"name"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
	// Hostname is empty for every name.
	Hostname string `json:"hostname,omitempty"`
	// AttachedRoutes is how many routes its status counts.
	AttachedRoutes int32 `json:"attachedRoutes"`
	// Conditions are the types of the conditions that are not good.
	Conditions []string `json:"conditions,omitempty"`
	// Programmed is the status of that condition. Empty: nothing is said.
	Programmed string `json:"programmed,omitempty"`
}

// ours reports whether Slipway serves the Gateway. One whose class was deleted, or may not be read, is ours as long as its
// Deployment is there.
func (s *standardGatewayFindings) ours() bool {
	if class := s.classes[string(s.gateway.Spec.GatewayClassName)]; class != nil {
		return class.Spec.ControllerName == gatewayapi.Controller
	}
	return s.deployment != nil && metav1.IsControlledBy(s.deployment, s.gateway)
}

// answered reports whether a controller has said something of the Gateway as it is now.
func (s *standardGatewayFindings) answered() bool {
	accepted := meta.FindStatusCondition(s.gateway.Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
	return accepted != nil && accepted.Status != metav1.ConditionUnknown &&
		(accepted.ObservedGeneration == 0 || accepted.ObservedGeneration >= s.gateway.Generation)
}

func (s *standardGatewayFindings) explain() whyView {
	v := verdictOfRelative(s.family.asked, s.now)
	root := node{Object: s.family.ref(), State: v.State, Reason: v.Reason, Message: v.Message}
	own := slices.Concat(classNodes(s), parametersNodes(s), listenerNodes(s))
	if s.ours() && s.answered() {
		owner := workloadOwner{s.gateway, s.family.ref(), standarddesired.Name(s.gateway)}
		own = slices.Concat(own, addressNodes(s), serviceNodes(s.facts(), owner), deploymentNodes(s.facts(), owner))
	} else {
		own = slices.Concat(own, causesBelow(s.facts(), s.family.asked))
	}
	if first := slices.IndexFunc(own, func(n node) bool {
		return n.State == health.Failed
	}); !s.answered() && len(own) > 0 && root.State != health.Terminating {
		cause := own[max(first, 0)]
		root.State, root.Reason, root.Message = cause.State, cause.Reason, cause.Object+": "+cause.Message
	}
	if cause := firstFailed(own); root.State == health.Healthy && cause != nil {
		// The status is about pods that are ready, and about routes and listeners.
		root.State, root.Reason, root.Message = health.Failed, cause.Reason, cause.Object+": "+cause.Message
	}
	if root.State != health.Healthy {
		root.Events = without(warnings(s.facts(), s.gateway.UID), root.Message)
	}
	details, served, all, refused := s.details()
	root.Causes = slices.Concat(own, refused)
	view := whyView{
		node: root, Name: s.gateway.Name, Namespace: s.gateway.Namespace, Unreadable: s.unreadable, Unanswered: s.family.unanswered,
		Routes: fmt.Sprintf("%d/%d", served, all), Gateway: details,
	}
	if len(details.Addresses) > 0 {
		view.Address = details.Addresses[0]
	}
	if s.deployment != nil {
		asked := int32(1)
		if s.deployment.Spec.Replicas != nil {
			asked = *s.deployment.Spec.Replicas
		}
		view.Replicas = fmt.Sprintf("%d/%d", s.deployment.Status.ReadyReplicas, asked)
	} else if root.State == health.Healthy {
		view.Message = "its controller serves every listener"
	}
	return view
}

// firstFailed finds the first node that has failed, as far down as there is one.
func firstFailed(nodes []node) *node {
	for i := range nodes {
		if deeper := firstFailed(nodes[i].Causes); deeper != nil {
			return deeper
		}
		if nodes[i].State == health.Failed {
			return &nodes[i]
		}
	}
	return nil
}

// classNodes returns the class if it is why the Gateway is not served.
func classNodes(s *standardGatewayFindings) []node {
	name := string(s.gateway.Spec.GatewayClassName)
	class, read := s.classes[name]
	n := node{Object: command.ObjectRef("gatewayclass", name), State: health.Failed}
	var accepted *metav1.Condition
	if class != nil {
		accepted = meta.FindStatusCondition(class.Status.Conditions, string(gatewayv1.GatewayClassConditionStatusAccepted))
	}
	switch {
	case read && class == nil && s.ours():
		n.State, n.Reason = health.Progressing, reasonNotFound
		n.Message = "does not exist any more; the Gateway is looked after as long as its Deployment is there"
	case read && class == nil:
		n.Reason, n.Message = reasonNotFound, "does not exist, and spec.gatewayClassName needs it"
	case accepted != nil && accepted.Status == metav1.ConditionFalse:
		n.Reason, n.Message = accepted.Reason, accepted.Message
	case !s.answered():
		n.Reason = reasonNotAnswered
		n.State, n.Message = s.unanswered(true, s.gateway, "the Gateway as it is now")
	default:
		return nil
	}
	return []node{n}
}

// parametersNodes lists GatewayParameters that do not exist.
func parametersNodes(s *standardGatewayFindings) []node {
	var nodes []node
	for _, missing := range s.parameters {
		nodes = append(nodes, node{
			Object: refFrom(s.gateway.Namespace, "GatewayParameters", missing.name), State: health.Failed,
			Reason: reasonNotFound, Message: "does not exist, and " + missing.field + " needs it",
		})
	}
	return nodes
}

// addressNodes returns the Service if the Gateway waits for its address.
func addressNodes(s *standardGatewayFindings) []node {
	programmed := meta.FindStatusCondition(s.gateway.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	if s.service == nil || programmed == nil || programmed.Status != metav1.ConditionFalse || !metav1.IsControlledBy(s.service, s.gateway) {
		return nil
	}
	n := node{
		Object: command.ObjectRef("Service", s.service.Name), State: health.Progressing, Reason: programmed.Reason,
		Events: warnings(s.facts(), s.service.UID),
	}
	switch gatewayv1.GatewayConditionReason(programmed.Reason) {
	case gatewayv1.GatewayReasonAddressNotAssigned:
		n.Message = fmt.Sprintf("has no address; it is of type %s", s.service.Spec.Type)
		if s.service.Spec.Type == corev1.ServiceTypeLoadBalancer {
			n.Message += ", so something in the cluster must give it one: without that, GatewayParameters can ask for another type"
		}
	case gatewayv1.GatewayReasonAddressNotUsable:
		n.Message = "has not got the address that spec.addresses asks for"
	default:
		return nil
	}
	return []node{n}
}

// badConditions are the conditions of a listener in the order of cause and effect, with the status that is not good.
var badConditions = []struct {
	kind   gatewayv1.ListenerConditionType
	status metav1.ConditionStatus
}{
	{gatewayv1.ListenerConditionAccepted, metav1.ConditionFalse},
	{gatewayv1.ListenerConditionConflicted, metav1.ConditionTrue},
	{gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse},
	{gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse},
	{gatewayv1.ListenerConditionOverlappingTLSConfig, metav1.ConditionTrue},
}

// bad are the conditions of a listener that are not good.
func bad(conditions []metav1.Condition) []metav1.Condition {
	var found []metav1.Condition
	for _, of := range badConditions {
		if c := meta.FindStatusCondition(conditions, string(of.kind)); c != nil && c.Status == of.status {
			found = append(found, *c)
		}
	}
	return found
}

// listenerNodes lists listeners with a problem. What follows from another condition, and says the same, is left out.
func listenerNodes(s *standardGatewayFindings) []node {
	if !s.answered() {
		return nil
	}
	var nodes []node
	for i := range s.gateway.Spec.Listeners {
		listener := &s.gateway.Spec.Listeners[i]
		seen := map[string]bool{}
		for _, c := range bad(statusOfListener(s.gateway, listener.Name).Conditions) {
			isEffect := c.Type == string(gatewayv1.ListenerConditionProgrammed) && len(seen) > 0
			if seen[c.Message] || isEffect {
				continue
			}
			seen[c.Message] = true
			n := node{
				Object: command.ObjectRef("listener", string(listener.Name)), State: health.Failed, Reason: c.Reason, Message: c.Message,
			}
			if c.Type == string(gatewayv1.ListenerConditionProgrammed) {
				n.State = health.Progressing
			}
			if c.Reason == string(gatewayv1.ListenerReasonRefNotPermitted) {
				n.Causes = s.certificateNodes(listener, i)
			}
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// certificateNodes lists the certificates of a listener that another namespace does not let it use.
func (s *standardGatewayFindings) certificateNodes(listener *gatewayv1.Listener, index int) []node {
	if listener.TLS == nil {
		return nil
	}
	var nodes []node
	for i, ref := range listener.TLS.CertificateRefs {
		name := types.NamespacedName{Namespace: s.gateway.Namespace, Name: string(ref.Name)}
		if ref.Namespace != nil {
			name.Namespace = string(*ref.Namespace)
		}
		n := node{Object: refFrom(s.gateway.Namespace, kindSecret, name), State: health.Failed}
		field := fmt.Sprintf("spec.listeners[%d].tls.certificateRefs[%d]", index, i)
		if n.Reason, n.Message = s.notGranted(command.KindGateway, kindSecret, name, field); n.Reason != "" {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func statusOfListener(gateway *gatewayv1.Gateway, name gatewayv1.SectionName) gatewayv1.ListenerStatus {
	for i := range gateway.Status.Listeners {
		if gateway.Status.Listeners[i].Name == name {
			return gateway.Status.Listeners[i]
		}
	}
	return gatewayv1.ListenerStatus{}
}

// details are what is shown besides the causes. served is how many of all routes are served, refused are nodes of the others.
func (s *standardGatewayFindings) details() (details *gatewayDetails, served, all int, refused []node) {
	d := &gatewayDetails{
		Class:      string(s.gateway.Spec.GatewayClassName),
		Accepted:   conditionStatus(s.gateway.Status.Conditions, string(gatewayv1.GatewayConditionAccepted)),
		Programmed: conditionStatus(s.gateway.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)),
		Listeners:  []listenerView{}, Routes: []parentView{},
	}
	if class := s.classes[d.Class]; class != nil {
		d.Controller = string(class.Spec.ControllerName)
	}
	for _, address := range s.gateway.Status.Addresses {
		d.Addresses = append(d.Addresses, address.Value)
	}
	for i := range s.gateway.Spec.Listeners {
		d.Listeners = append(d.Listeners, listenerViewOf(s.gateway, &s.gateway.Spec.Listeners[i]))
	}
	seen := map[string]int{}
	for _, route := range s.routes {
		at := s.parents(route, s.gateway)
		all++
		if slices.ContainsFunc(at, func(p parentView) bool { return p.State == health.Healthy }) {
			served++
		}
		name := refFrom(s.gateway.Namespace, route.kind, types.NamespacedName{Namespace: route.Namespace, Name: route.Name})
		for _, n := range parentNodes(at) {
			if known, ok := seen[n.Reason+n.Message]; ok {
				refused[known].Alike++
				continue
			}
			n.Object = name
			seen[n.Reason+n.Message] = len(refused)
			refused = append(refused, n)
		}
		for _, parent := range at {
			parent.Route, parent.Parent = name, ""
			d.Routes = append(d.Routes, parent)
		}
	}
	slices.SortStableFunc(d.Routes, func(a, b parentView) int {
		return cmp.Or(compareBool(a.State == health.Healthy, b.State == health.Healthy), cmp.Compare(a.Route, b.Route))
	})
	if left := len(d.Routes) - maxShownRoutes; left > 0 {
		d.Routes, d.RoutesLeft = d.Routes[:maxShownRoutes], left
	}
	return d, served, all, refused[:min(len(refused), maxRefusedRoutes)]
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func listenerViewOf(gateway *gatewayv1.Gateway, listener *gatewayv1.Listener) listenerView {
	status := statusOfListener(gateway, listener.Name)
	view := listenerView{
		Name: string(listener.Name), Port: listener.Port, Protocol: string(listener.Protocol), AttachedRoutes: status.AttachedRoutes,
		Programmed: conditionStatus(status.Conditions, string(gatewayv1.ListenerConditionProgrammed)),
	}
	if listener.Hostname != nil {
		view.Hostname = string(*listener.Hostname)
	}
	for _, c := range bad(status.Conditions) {
		view.Conditions = append(view.Conditions, c.Type+"="+string(c.Status))
	}
	return view
}
