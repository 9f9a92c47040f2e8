package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/health"
)

// ref formats the name of the route.
func (s *standardRouteFindings) ref() string {
	return command.ObjectRef(s.asked.kind.Kind, s.asked.name)
}

// explain builds the tree of causes of a route: its parents and its backends with a problem.
func (s *standardRouteFindings) explain() whyView {
	route := s.route
	root := node{Object: s.ref(), State: health.Healthy}
	parents := s.parents(route, nil)
	root.Causes = slices.Concat(parentNodes(parents), standardBackendNodes(s))
	switch {
	case route.DeletionTimestamp != nil:
		v := verdictOfRelative(s.asked, s.now)
		root.State, root.Reason, root.Message = v.State, v.Reason, v.Message
	case len(route.refs) == 0:
		root.State, root.Reason, root.Message = health.Failed, "NoParent", "spec.parentRefs names no Gateway, so nobody serves it"
	case len(root.Causes) > 0:
		first := root.Causes[0]
		root.State, root.Reason, root.Message = first.State, first.Reason, first.Object+": "+first.Message
		if anyFailed(root.Causes) {
			root.State = health.Failed
		}
	default:
		root.Message = servedBy(parents)
	}
	if root.State != health.Healthy {
		root.Events = without(warnings(s.facts(), route.UID), root.Message)
	}
	return whyView{node: root, Name: route.Name, Namespace: route.Namespace, Unreadable: s.unreadable, Parents: parents}
}

// servedBy names the parents of a route that is well.
func servedBy(parents []parentView) string {
	var names []string
	for _, parent := range parents {
		if !slices.Contains(names, parent.Parent) {
			names = append(names, parent.Parent)
		}
	}
	return "it is served by " + strings.Join(names, " and ")
}

// parentNodes lists the parents with a problem.
func parentNodes(parents []parentView) []node {
	var nodes []node
	for _, parent := range parents {
		if parent.State == health.Healthy {
			continue
		}
		n := node{Object: parent.Parent, State: parent.State, Reason: parent.Reason, Message: parent.Message}
		if parent.Listener != "" {
			n.Object += command.Printable(" (" + parent.Listener + ")")
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// standardBackendNodes lists the Services of a route that cannot be used, each with its first problem.
func standardBackendNodes(s *standardRouteFindings) []node {
	var nodes []node
	seen := map[string]bool{}
	for _, use := range s.route.backends {
		n := node{Object: refFrom(s.route.Namespace, "Service", use.name), State: health.Failed}
		var found *serviceFinding
		if n.Reason, n.Message = s.notGranted(s.route.kind, "Service", use.name, use.field); n.Reason == "" {
			if found = s.services[use.name]; found == nil {
				continue // it could not be read
			}
			n.Reason, n.Message = found.lack(use.port, s.route.kind == kindUDPRoute)
		}
		idle := n.Reason == slipwayv1alpha1.ReasonNoEndpoints && use.idle
		key := n.Object + n.Reason + n.Message
		if n.Reason == "" || idle || seen[key] {
			continue
		}
		seen[key] = true
		if found != nil && found.service != nil && use.name.Namespace == s.route.Namespace {
			n.Events = warnings(s.facts(), found.service.UID)
		}
		if n.Reason == slipwayv1alpha1.ReasonNoEndpoints {
			n.Causes = s.podsBehind(use.name, found.pods)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// podsBehind lists the pods of a Service that are not healthy. Logs and events are read in the namespace of the route alone.
func (s *standardRouteFindings) podsBehind(service types.NamespacedName, pods []corev1.Pod) []node {
	nodes := podNodesOf(s.facts(), pods)
	if service.Namespace == s.route.Namespace {
		return nodes
	}
	for i := range nodes {
		nodes[i].Object = strings.Replace(nodes[i].Object, "pod/", "pod/"+service.Namespace+"/", 1)
		nodes[i].Log = nil
	}
	return nodes
}

// notGranted tells what is missing where an object refers to one of another namespace that does not permit it. It returns
// nothing where that is permitted, or could not be read.
func (s *standardFindings) notGranted(kind, toKind string, to types.NamespacedName, field string) (reason, message string) {
	from := s.namespace
	grants, read := s.grants[to.Namespace]
	if to.Namespace == from || !read || gatewayapi.Permitted(grants, kind, from, toKind, to) {
		return "", ""
	}
	return string(gatewayv1.RouteReasonRefNotPermitted), fmt.Sprintf(
		"%s needs a ReferenceGrant: create one in namespace %q with spec.from [{group: %s, kind: %s, namespace: %s}] and spec.to "+
			"[{group: \"\", kind: %s, name: %s}]",
		field, to.Namespace, gatewayv1.GroupName, kind, from, toKind, to.Name)
}

// lack tells why a Service cannot take requests at a port. It returns nothing where it can, as far as was read.
func (s *serviceFinding) lack(port int32, udp bool) (reason, message string) {
	switch {
	case s.service == nil:
		return slipwayv1alpha1.ReasonBackendNotFound, "does not exist"
	case !slices.ContainsFunc(s.service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port && (p.Protocol == corev1.ProtocolUDP) == udp
	}):
		if udp {
			return slipwayv1alpha1.ReasonPortNotFound, fmt.Sprintf("has no port %d for UDP", port)
		}
		return slipwayv1alpha1.ReasonPortNotFound, fmt.Sprintf("has no port %d", port)
	case !s.slicesRead || s.service.Spec.Type == corev1.ServiceTypeExternalName || readyEndpoints(s.slices) > 0:
		return "", ""
	}
	message = "has no endpoint that is ready"
	if s.podsRead && len(s.pods) == 0 {
		message += ": no pod has the labels of its selector (spec.selector)"
	}
	return slipwayv1alpha1.ReasonNoEndpoints, message
}
