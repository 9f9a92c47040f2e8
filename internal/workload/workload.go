package workload

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Workload is a Deployment and what is known of it.
type Workload struct {
	// Name is that of the Deployment, be there one or not.
	Name string
	// Deployment is as the cache has it, empty (no UID) where there is none.
	Deployment *appsv1.Deployment
	// Autoscaler owns the number of pods. Nil: the spec does.
	Autoscaler *autoscalingv2.HorizontalPodAutoscaler
	// MinReplicas is the number of pods that should run at the least.
	MinReplicas int32
	// ReplicaSets are the metadata of the Deployment's ReplicaSets.
	ReplicaSets []metav1.PartialObjectMetadata
	// Pods are all of its pods, by name.
	Pods []corev1.Pod
	// Events are those of pods whose status does not say what is wrong, by the UID of the pod.
	Events map[types.UID][]corev1.Event
	// Looked reports whether what refuses pods was looked at again, and Refusal is what is left of that. It is nil if nothing is.
	Looked  bool
	Refusal *health.Refusal
}

// Exists reports whether there is a Deployment.
func (w Workload) Exists() bool { return w.Deployment.UID != "" }

// ReplicasAsked is how many pods there should be at the moment: the autoscaler's number where there is one.
func (w Workload) ReplicasAsked() int32 {
	if w.Autoscaler != nil && w.Deployment.Spec.Replicas != nil {
		return *w.Deployment.Spec.Replicas
	}
	return w.MinReplicas
}

// Serves reports whether the pods that were asked for run. An autoscaler that is adding pods above its lower bound does not make
// a workload any less ready.
func (w Workload) Serves() bool {
	deployed := w.Deployment.Status
	if health.RolledOut(w.Deployment) {
		// Somebody may have scaled an autoscaled Deployment to nothing.
		return deployed.AvailableReplicas >= w.MinReplicas
	}
	return w.Autoscaler != nil && w.Exists() && deployed.ObservedGeneration >= w.Deployment.Generation &&
		deployed.UpdatedReplicas == deployed.Replicas && deployed.AvailableReplicas >= w.MinReplicas
}

// Rolling reports whether pods of another template are being replaced, that the first ones are being started, or that their
// number is being changed.
func (w Workload) Rolling() bool {
	if !w.Exists() || health.RolledOut(w.Deployment) {
		return false
	}
	deployed := w.Deployment.Status
	return deployed.ObservedGeneration < w.Deployment.Generation ||
		deployed.UpdatedReplicas < deployed.Replicas || deployed.Replicas != w.ReplicasAsked()
}

// Template identifies the pods of the current template. It is empty while the Deployment's controller has not made a
// ReplicaSet of it.
func (w Workload) Template() string { return health.CurrentTemplate(w.Deployment, w.ReplicaSets) }

// IsOf reports whether a pod is of a template.
func IsOf(pod *corev1.Pod, template string) bool {
	return template != "" && pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == template
}

// Split separates the pods of the current template from all others, the newest first: it tells most about what was asked for
// last. Where nobody knows the template, all are others.
func (w Workload) Split() (current, others []*corev1.Pod) {
	template := w.Template()
	for i := range w.Pods {
		if pod := &w.Pods[i]; IsOf(pod, template) {
			current = append(current, pod)
		} else {
			others = append(others, pod)
		}
	}
	return newestFirst(current), newestFirst(others)
}

func newestFirst(pods []*corev1.Pod) []*corev1.Pod {
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return pods
}

// JudgeAutoscaler finds what keeps the autoscaler from scaling, and how long it is until that may change by time alone.
func (w Workload) JudgeAutoscaler(now time.Time) (trouble *health.Trouble, left time.Duration) {
	if w.Autoscaler == nil {
		return nil, 0
	}
	verdict, left := health.Autoscaler(w.Autoscaler, w.Deployment, now)
	if verdict.State == health.Failed {
		trouble = verdict.Trouble()
	}
	return trouble, left
}

// NotReady says why pods are missing.
func (w Workload) NotReady(verdict Verdict) health.Trouble {
	notReady := func(message string) health.Trouble {
		return health.Trouble{Reason: slipwayv1alpha1.ReasonReplicasNotReady, Message: message}
	}
	switch {
	case w.MinReplicas == 0:
		return health.Trouble{Reason: slipwayv1alpha1.ReasonScaledToZero, Message: "nothing runs, as spec.replicas says"}
	case verdict.Trouble != nil:
		return *verdict.Trouble
	case verdict.Waiting != "":
		return notReady(verdict.Waiting)
	case !w.Exists():
		return notReady(fmt.Sprintf("Deployment %q does not exist", w.Name))
	default:
		return notReady(fmt.Sprintf("Deployment %q has fewer ready pods than asked for", w.Deployment.Name))
	}
}
