package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

// node is one object in the tree of causes.
type node struct {
	// Object is kind/name.
	Object  string       `json:"object"`
	State   health.State `json:"state"`
	Reason  string       `json:"reason,omitempty"`
	Message string       `json:"message,omitempty"`
	// Alike is how many more objects have the same problem and are left out.
	Alike  int         `json:"alike,omitempty"`
	Events []eventLine `json:"events,omitempty"`
	Log    *logView    `json:"log,omitempty"`
	Causes []node      `json:"causes,omitempty"`
}

// whyView is the output of why.
type whyView struct {
	node
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Replicas  string `json:"replicas,omitempty"`
	Image     string `json:"image,omitempty"`
	// Routes is live/total, or served/total of a Gateway. Only these have it.
	Routes string `json:"routes,omitempty"`
	// Address is the address of an APIGateway or a Gateway.
	Address string `json:"address,omitempty"`
	// Gateway is a Gateway of the Gateway API, and Parents are those of a route.
	Gateway *gatewayDetails `json:"gateway,omitempty"`
	Parents []parentView    `json:"parents,omitempty"`
	// Other is how to ask for another object that the given name could mean as well.
	Other string `json:"other,omitempty"`
	// Unreadable lists what could not be read, and so is missing here.
	Unreadable []string `json:"unreadable,omitempty"`
	// Unanswered lists what could not be read for another reason than rights.
	Unanswered []string `json:"unanswered,omitempty"`
}

// asFound is the root of an object of Slipway, doubted where what was found says otherwise.
func asFound(root node) node {
	if root.State == health.Healthy && anyFailed(root.Causes) {
		// The operator has not seen the change yet, or does not run.
		root.State, root.Reason, root.Message = health.Failed, "NotAsReported", "its status says that all is well, but it is not"
	}
	return root
}

// ownRoot is the root of an object of Slipway with what the operator says besides.
func ownRoot(f *findings, owner command.Declared, root node) node {
	if root.Reason == health.ReasonNotObserved {
		root.Message += "; if that lasts, see whether it runs, and whether it is limited to other namespaces"
	}
	if root.State != health.Healthy {
		root.Events = ownWarnings(f, owner, root.Message)
	}
	return root
}

func anyFailed(nodes []node) bool {
	return slices.ContainsFunc(nodes, func(n node) bool { return n.State == health.Failed || anyFailed(n.Causes) })
}

// configNodes lists the Secrets and ConfigMaps that the spec refers to and that do not
// exist. A missing pull secret is not a cause as long as the image can be pulled without
// it, as the verdict on the object tells.
func configNodes(config []configFinding, v health.Verdict) []node {
	var nodes []node
	for _, c := range config {
		n := node{Object: strings.ToLower(c.kind) + "/" + c.name, State: health.Failed}
		pull := strings.HasPrefix(c.field, "spec.imagePullSecrets")
		switch {
		case !c.readable:
			continue
		case !c.exists && pull && v.State == health.Healthy:
			continue
		case !c.exists && c.kind == kindSecret:
			n.Reason, n.Message = slipwayv1alpha1.ReasonSecretNotFound, fmt.Sprintf("does not exist, and %s needs it", c.field)
		case !c.exists:
			n.Reason, n.Message = slipwayv1alpha1.ReasonConfigMapNotFound, fmt.Sprintf("does not exist, and %s needs it", c.field)
		case len(c.missing) > 0:
			n.Reason, n.Message = slipwayv1alpha1.ReasonKeyNotFound, fmt.Sprintf("has no key %q, and %s needs it", c.missing[0], c.field)
		default:
			continue
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func serviceNodes(f *findings, owner workloadOwner) []node {
	if f.service == nil || metav1.IsControlledBy(f.service, owner.object) {
		return nil // A missing one is created in the same reconcile as the Deployment.
	}
	return []node{foreign("service/"+f.service.Name, owner.ref)}
}

func foreign(object, owner string) node {
	return node{
		Object: object, State: health.Failed, Reason: slipwayv1alpha1.ReasonNameConflict,
		Message: fmt.Sprintf("exists and does not belong to %s, which needs the name: delete or rename it", owner),
	}
}

// deploymentNodes returns the Deployment and what is below it, or nothing when all of it is
// healthy.
func deploymentNodes(f *findings, owner workloadOwner) []node {
	object := "deployment/" + owner.child
	if f.deployment == nil {
		if slices.Contains(f.unreadable, "the Deployment") {
			return nil
		}
		return []node{{
			Object: object, State: health.Progressing, Reason: "NotFound",
			Message: "does not exist; the operator makes it when it has what the spec needs",
		}}
	}
	if !metav1.IsControlledBy(f.deployment, owner.object) {
		return []node{foreign(object, owner.ref)}
	}
	v := health.DeploymentOf(f.deployment, replicaSetsOf(f))
	causes := slices.Concat(replicaSetNodes(f), podNodes(f, f.deployment.UID))
	if v.State == health.Healthy {
		// The status of a ReplicaSet may be older than that of the Deployment. Only pods
		// with a problem count.
		causes = slices.DeleteFunc(causes, func(n node) bool { return len(n.Causes) == 0 && strings.HasPrefix(n.Object, "replicaset/") })
		if len(causes) == 0 {
			return nil
		}
		v.Message = "is rolled out"
	}
	return []node{{
		Object: object, State: v.State, Reason: v.Reason, Message: shorten(v.Message, "Deployment", f.deployment.Name),
		Events: warnings(f, f.deployment.UID), Causes: causes,
	}}
}

// replicaSetsOf returns the metadata of the Deployment's ReplicaSets.
func replicaSetsOf(f *findings) []metav1.PartialObjectMetadata {
	var sets []metav1.PartialObjectMetadata
	for i := range f.replicaSets {
		if metav1.IsControlledBy(&f.replicaSets[i], f.deployment) {
			sets = append(sets, metav1.PartialObjectMetadata{ObjectMeta: f.replicaSets[i].ObjectMeta})
		}
	}
	return sets
}

// replicaSetNodes lists the ReplicaSets without all their pods, the current one first.
func replicaSetNodes(f *findings) []node {
	var current, older []node
	for i := range f.replicaSets {
		set := &f.replicaSets[i]
		if !metav1.IsControlledBy(set, f.deployment) {
			continue
		}
		want := int32(1)
		if set.Spec.Replicas != nil {
			want = *set.Spec.Replicas
		}
		pods := podNodes(f, set.UID)
		if len(pods) == 0 && set.Status.AvailableReplicas >= want && set.Status.Replicas <= want {
			continue
		}
		n := node{Object: "replicaset/" + set.Name, State: health.Progressing, Events: warnings(f, set.UID), Causes: pods}
		n.Message = fmt.Sprintf("%d/%d pods ready", set.Status.ReadyReplicas, want)
		if set.Annotations[health.AnnotationRevision] == f.deployment.Annotations[health.AnnotationRevision] {
			n.Message += ", of the current pod template"
			current = append(current, n)
			continue
		}
		n.Message += ", of an earlier pod template"
		older = append(older, n)
	}
	return append(current, older...)
}

// podNodes lists the pods of an owner that are not healthy.
func podNodes(f *findings, owner types.UID) []node {
	var owned []corev1.Pod
	for i := range f.pods {
		if controller := metav1.GetControllerOf(&f.pods[i]); controller != nil && controller.UID == owner {
			owned = append(owned, f.pods[i])
		}
	}
	return podNodesOf(f, owned)
}

// podNodesOf lists the pods that are not healthy. Of pods with the same problem it shows
// one.
func podNodesOf(f *findings, pods []corev1.Pod) []node {
	var nodes []node
	seen := map[string]int{}
	for i := range pods {
		pod := &pods[i]
		v := health.Pod(pod, eventsOf(f, pod.UID)...)
		if v.State == health.Healthy || v.State == health.Terminating && leavesInTime(f, pod) {
			continue
		}
		message := shorten(v.Message, "pod", pod.Name)
		if v.State == health.Terminating && !f.now.Before(pod.DeletionTimestamp.Time) {
			message += fmt.Sprintf(", and should have been gone %s ago: does its node answer?", command.Age(*pod.DeletionTimestamp, f.now))
		}
		if at, ok := seen[v.Reason+message]; ok {
			nodes[at].Alike++
			continue
		}
		seen[v.Reason+message] = len(nodes)
		n := node{
			Object: "pod/" + pod.Name, State: v.State, Reason: v.Reason, Message: message, Events: without(warnings(f, pod.UID), message),
		}
		if target, ok := logTargetOf(pod); ok && v.State != health.Terminating {
			n.Log = logOf(f, target)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// eventsOf returns the warning events of an object.
func eventsOf(f *findings, uid types.UID) []corev1.Event {
	var events []corev1.Event
	for i := range f.events {
		if f.events[i].InvolvedObject.UID == uid {
			events = append(events, f.events[i])
		}
	}
	return events
}

// leavesInTime reports whether a terminating pod is no problem: its grace period is not
// over, and no new pod waits for its volume.
func leavesInTime(f *findings, pod *corev1.Pod) bool {
	return f.now.Before(pod.DeletionTimestamp.Time) && (!f.sharesVolume || health.RolledOut(f.deployment))
}

// shorten removes an object's own name from the beginning of a message that is printed
// after that name.
func shorten(message, kind, name string) string {
	rest, found := strings.CutPrefix(message, fmt.Sprintf("%s %q", kind, name))
	if !found {
		return message
	}
	return strings.TrimLeft(rest, ": ")
}
