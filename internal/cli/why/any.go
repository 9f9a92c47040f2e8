package why

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/text"
)

// maxWhyObjects bounds how many objects below the named one why reads.
const maxWhyObjects = 500

// anyFindings are the findings of an object of a kind that is not known, with what is below it.
type anyFindings struct {
	findings
	*family
}

// loadAny reads an object of any kind with all that is below it, and the warnings of its namespace.
func loadAny(ctx context.Context, clients *command.AnyClients, asked named) (explained, error) {
	family, err := loadFamily(ctx, clients, asked.object, asked.kind, maxWhyObjects)
	if err != nil {
		return nil, err
	}
	f := &anyFindings{findings: findings{unreadable: family.unreadable, byCauses: true}, family: family}
	if family.left > 0 {
		family.unanswered = append(family.unanswered, text.Count(int64(family.left), "more object")+" below it")
	}
	// Events of an object without a namespace are in the namespace default.
	at := *clients.Clients
	if at.Namespace = asked.object.GetNamespace(); at.Namespace == "" {
		at.Namespace = corev1.NamespaceDefault
	}
	f.clients = &at
	if err := f.read(family.ref(), []step{eventsStep(ctx, &at, f.facts())}); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *anyFindings) explain() whyView {
	asked := f.asked
	v := verdictOfRelative(asked, f.now)
	root := node{Object: f.ref(), State: v.State, Reason: v.Reason, Message: v.Message}
	if root.State == health.Healthy && root.Message == "" {
		root.Message = v.Field[1:] + " is " + v.Value
	}
	if pod := asPod(asked); pod != nil {
		root = podRoot(f.facts(), root, pod)
	} else {
		root.Causes = causesBelow(f.facts(), asked)
	}
	if root.State != health.Healthy && root.Events == nil {
		root.Events = without(warnings(f.facts(), asked.uid), root.Message)
	}
	return whyView{node: root, Name: asked.name, Namespace: asked.namespace, Unreadable: f.findings.unreadable, Unanswered: f.unanswered}
}

// podRoot explains a pod that was named itself, with its events and its log.
func podRoot(f *findings, root node, pod *corev1.Pod) node {
	if root.State == health.Healthy {
		return root
	}
	for _, n := range podNodesOf(f, []corev1.Pod{*pod}) {
		n.Object = root.Object
		return n
	}
	return root
}

// causesBelow lists what is wrong below an object: what has failed or is not ready, and what has such below it.
func causesBelow(f *findings, parent *relative) []node {
	var nodes []node
	var pods []corev1.Pod
	for _, child := range parent.children {
		if pod := asPod(child); pod != nil && pod.Status.Phase != corev1.PodSucceeded {
			pods = append(pods, *pod)
			continue
		}
		v := verdictOfRelative(child, f.now)
		causes := causesBelow(f, child)
		if !isCause(v) && len(causes) == 0 {
			continue
		}
		n := node{
			Object: command.ObjectRef(child.kind.Kind, child.name), State: v.State, Reason: v.Reason, Message: v.Message, Causes: causes,
		}
		switch {
		case v.State == health.Healthy:
			n.Message = "says that it is healthy, and what is below it is not"
		case isCause(v):
			n.Events = without(warnings(f, child.uid), v.Message)
		}
		nodes = append(nodes, n)
	}
	return append(nodes, podNodesOf(f, pods)...)
}

// isCause reports whether a verdict may be why something above does not do its work. Nobody knows that of what is Unknown.
func isCause(v health.Verdict) bool {
	return v.State == health.Failed || v.State == health.Progressing || v.Reason == health.ReasonDeletionStuck
}

// asPod decodes a pod. It returns nil for another kind.
func asPod(r *relative) *corev1.Pod {
	if r.object == nil || r.kind.Kind != "Pod" || r.kind.Group != "" {
		return nil
	}
	pod := &corev1.Pod{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(r.object.Object, pod) != nil {
		return nil
	}
	return pod
}
