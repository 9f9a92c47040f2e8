package why

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

func (f *gatewayFindings) owner() command.Declared { return f.object }

func (f *gatewayFindings) ref() string { return gatewayRef(f.object.Name) }

func (f *gatewayFindings) verdict() health.Verdict {
	return command.VerdictOf(f.object, f.ref(), f.object.Status.ObservedGeneration, f.object.Generation)
}

func (f *gatewayFindings) explain() whyView {
	v := f.verdict()
	owner := workloadOwner{f.object, f.ref(), f.object.Name}
	root := ownRoot(f.facts(), f.object, asFound(node{
		Object: f.ref(), State: v.State, Reason: v.Reason, Message: v.Message,
		Causes: slices.Concat(routeNodes(f), configNodes(f.config, v), exposureNodes(f), serviceNodes(f.facts(), owner), behindNodes(f),
			deploymentNodes(f.facts(), owner)),
	}))
	status := f.object.Status
	view := whyView{
		node: root, Name: f.object.Name, Namespace: f.object.Namespace, Unreadable: f.unreadable,
		Replicas: status.Summary.Replicas, Routes: status.Summary.Routes, Address: status.Summary.Address,
	}
	if view.Replicas == "" {
		view.Replicas = fmt.Sprintf("%d/%d", status.ReadyReplicas, desired.MinReplicas(f.object))
	}
	if view.Routes == "" {
		view.Routes = fmt.Sprintf("%d/%d", status.Routes.Live, len(f.object.Spec.Routes))
	}
	return view
}

// routeNodes lists two kinds of routes: those that are not live according to the status,
// and those whose Service has no ready endpoint, whatever the status says. Below each route
// is its Service, and below that are the pods.
func routeNodes(f *gatewayFindings) []node {
	reported := map[string]slipwayv1alpha1.RouteNotLive{}
	for _, route := range f.object.Status.Routes.NotLive {
		reported[route.Name] = route
	}
	var nodes []node
	seen := map[string]int{}
	for _, route := range f.object.Spec.Routes {
		name := routeName(route)
		n := node{Object: "route/" + name, State: health.Failed, Causes: backendNodes(f, route)}
		notLive, isReported := reported[name]
		delete(reported, name)
		switch {
		case isReported:
			n.Reason, n.Message = notLive.Reason, notLive.Message
			if notLive.Replicas != "" {
				n.Message += fmt.Sprintf(" (served by %s replicas)", notLive.Replicas)
			}
		case len(n.Causes) > 0:
			n.Reason, n.Message = n.Causes[0].Reason, n.Causes[0].Object+" "+n.Causes[0].Message
		default:
			continue
		}
		if at, ok := seen[n.Reason+n.Message]; ok && len(n.Causes) == 0 {
			nodes[at].Alike++
			continue
		}
		seen[n.Reason+n.Message] = len(nodes)
		nodes = append(nodes, n)
	}
	// Routes that status names differently, because two routes have the same name.
	for _, notLive := range f.object.Status.Routes.NotLive {
		if left, ok := reported[notLive.Name]; ok {
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
func backendNodes(f *gatewayFindings, route slipwayv1alpha1.Route) []node {
	var nodes []node
	for _, backend := range backendsOf(route) {
		if n, ok := backendNode(f, string(backend.Name), backend.Port); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func backendNode(f *gatewayFindings, name string, port int32) (node, bool) {
	if f.services == nil {
		return node{}, false
	}
	pods, looked := f.backendPods[name]
	found := serviceFinding{service: f.services[name], slices: f.slices[name], slicesRead: f.slices != nil, pods: pods, podsRead: looked}
	n := node{Object: "service/" + name, State: health.Failed}
	if n.Reason, n.Message = found.lack(port, false); n.Reason == "" {
		return node{}, false
	}
	if n.Reason == slipwayv1alpha1.ReasonNoEndpoints {
		n.Causes = podNodesOf(f.facts(), pods)
		n.Events = warnings(f.facts(), found.service.UID)
	}
	return n, true
}

// exposureNodes lists what prevents access to the gateway from outside.
func exposureNodes(f *gatewayFindings) []node {
	healthy := f.verdict().State == health.Healthy
	if f.ingress != nil && !metav1.IsControlledBy(f.ingress, f.object) {
		return []node{foreign("ingress/"+f.ingress.Name, f.ref())}
	}
	degraded := meta.FindStatusCondition(f.object.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
	if degraded != nil && degraded.Status == metav1.ConditionTrue {
		switch degraded.Reason {
		case slipwayv1alpha1.ReasonKindNotFound, slipwayv1alpha1.ReasonParentNotFound, slipwayv1alpha1.ReasonParentRefused:
			return []node{{
				Object: "httproute/" + desired.Name(f.object), State: health.Failed, Reason: degraded.Reason, Message: degraded.Message,
			}}
		}
	}
	if f.ingress != nil && !healthy && len(f.ingress.Status.LoadBalancer.Ingress) == 0 {
		return []node{{
			Object: "ingress/" + f.ingress.Name, State: health.Progressing, Reason: "NoAddress",
			Message: "no controller has given it an address (spec.expose.ingressClassName)", Events: warnings(f.facts(), f.ingress.UID),
		}}
	}
	return nil
}

// podOf finds the pod's name in a message.
var podOf = regexp.MustCompile(`^pod "([^"]+)"`)

// behindNodes returns the replica that does not serve the current spec, according to the
// status. Only the operator asks the pods.
func behindNodes(f *gatewayFindings) []node {
	programmed := meta.FindStatusCondition(f.object.Status.Conditions, slipwayv1alpha1.ConditionProgrammed)
	if programmed == nil || programmed.Status != metav1.ConditionFalse {
		return nil
	}
	match := podOf.FindStringSubmatch(programmed.Message)
	if match == nil || !slices.ContainsFunc(f.pods, func(p corev1.Pod) bool {
		return p.Name == match[1] && health.Pod(&p).State == health.Healthy
	}) {
		return nil // The Deployment's node explains the rest.
	}
	return []node{{
		Object: "pod/" + match[1], State: health.Failed, Reason: programmed.Reason,
		Message: shorten(programmed.Message, "pod", match[1]),
	}}
}
