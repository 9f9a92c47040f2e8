package why

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// gatewayView is what why shows of an APIGateway.
func gatewayView(f *findings, root node) whyView {
	status := f.gateway.object.Status
	view := whyView{
		node: root, Name: f.gateway.object.Name, Namespace: f.gateway.object.Namespace, Unreadable: f.unreadable,
		Replicas: status.Summary.Replicas, Routes: status.Summary.Routes, Address: status.Summary.Address,
	}
	if view.Replicas == "" {
		view.Replicas = fmt.Sprintf("%d/%d", status.ReadyReplicas, desired.MinReplicas(f.gateway.object))
	}
	if view.Routes == "" {
		view.Routes = fmt.Sprintf("%d/%d", status.Routes.Live, len(f.gateway.object.Spec.Routes))
	}
	return view
}

// routeNodes lists two kinds of routes: those that are not live according to the status,
// and those whose Service has no ready endpoint, whatever the status says. Below each route
// is its Service, and below that are the pods.
func routeNodes(f *findings) []node {
	told := map[string]slipwayv1alpha1.RouteNotLive{}
	for _, route := range f.gateway.object.Status.Routes.NotLive {
		told[route.Name] = route
	}
	var nodes []node
	said := map[string]int{}
	for _, route := range f.gateway.object.Spec.Routes {
		name := routeName(route)
		n := node{Object: "route/" + name, State: health.Failed, Causes: backendNodes(f, route)}
		notLive, isTold := told[name]
		delete(told, name)
		switch {
		case isTold:
			n.Reason, n.Message = notLive.Reason, notLive.Message
			if notLive.Replicas != "" {
				n.Message += fmt.Sprintf(" (served by %s replicas)", notLive.Replicas)
			}
		case len(n.Causes) > 0:
			n.Reason, n.Message = n.Causes[0].Reason, n.Causes[0].Object+" "+n.Causes[0].Message
		default:
			continue
		}
		if at, ok := said[n.Reason+n.Message]; ok && len(n.Causes) == 0 {
			nodes[at].Alike++
			continue
		}
		said[n.Reason+n.Message] = len(nodes)
		nodes = append(nodes, n)
	}
	// Routes that status names differently, because two routes have the same name.
	for _, notLive := range f.gateway.object.Status.Routes.NotLive {
		if left, ok := told[notLive.Name]; ok {
			nodes = append(nodes, node{Object: "route/" + left.Name, State: health.Failed, Reason: left.Reason, Message: left.Message})
		}
	}
	return nodes
}

// routeName is the name that status uses for a route.
func routeName(route slipwayv1alpha1.Route) string {
	if route.Name != "" {
		return route.Name
	}
	path := route.Path
	if path == "" {
		path = "/"
	}
	return string(route.Host) + path
}

// backendNodes lists the Services of a route that cannot serve it.
func backendNodes(f *findings, route slipwayv1alpha1.Route) []node {
	var nodes []node
	for _, backend := range backendsOf(route) {
		if n, ok := backendNode(f, string(backend.Name), backend.Port); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func backendNode(f *findings, name string, port int32) (node, bool) {
	g := f.gateway
	if g.services == nil {
		return node{}, false
	}
	pods, looked := g.backendPods[name]
	found := serviceFinding{service: g.services[name], slices: g.slices[name], slicesRead: g.slices != nil, pods: pods, podsRead: looked}
	n := node{Object: "service/" + name, State: health.Failed}
	if n.Reason, n.Message = found.lack(port, false); n.Reason == "" {
		return node{}, false
	}
	if n.Reason == slipwayv1alpha1.ReasonNoEndpoints {
		n.Causes = podNodesOf(f, pods)
		n.Events = warnings(f, found.service.UID)
	}
	return n, true
}

// exposureNodes lists what prevents access to the gateway from outside.
func exposureNodes(f *findings) []node {
	g := f.gateway
	healthy := f.verdict().State == health.Healthy
	if g.ingress != nil && !metav1.IsControlledBy(g.ingress, g.object) {
		return []node{foreign("ingress/"+g.ingress.Name, f.ref())}
	}
	degraded := meta.FindStatusCondition(g.object.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
	if degraded != nil && degraded.Status == metav1.ConditionTrue {
		switch degraded.Reason {
		case slipwayv1alpha1.ReasonKindNotFound, slipwayv1alpha1.ReasonParentNotFound, slipwayv1alpha1.ReasonParentRefused:
			return []node{{Object: "httproute/" + desired.Name(g.object), State: health.Failed, Reason: degraded.Reason, Message: degraded.Message}}
		}
	}
	if g.ingress != nil && !healthy && len(g.ingress.Status.LoadBalancer.Ingress) == 0 {
		return []node{{
			Object: "ingress/" + g.ingress.Name, State: health.Progressing, Reason: "NoAddress",
			Message: "no controller has given it an address (spec.expose.ingressClassName)", Events: warnings(f, g.ingress.UID),
		}}
	}
	return nil
}

// podOf finds the pod's name in a message.
var podOf = regexp.MustCompile(`^pod "([^"]+)"`)

// behindNodes returns the replica that does not serve the current spec, according to the
// status. Only the operator asks the pods.
func behindNodes(f *findings) []node {
	programmed := meta.FindStatusCondition(f.gateway.object.Status.Conditions, slipwayv1alpha1.ConditionProgrammed)
	if programmed == nil || programmed.Status != metav1.ConditionFalse {
		return nil
	}
	match := podOf.FindStringSubmatch(programmed.Message)
	if match == nil || !slices.ContainsFunc(f.pods, func(p corev1.Pod) bool { return p.Name == match[1] && health.Pod(&p).State == health.Healthy }) {
		return nil // The Deployment's node explains the rest.
	}
	return []node{{
		Object: "pod/" + match[1], State: health.Failed, Reason: programmed.Reason,
		Message: shorten(programmed.Message, "pod", match[1]),
	}}
}
