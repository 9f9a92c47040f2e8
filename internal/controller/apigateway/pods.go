package apigateway

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/replica"
	"github.com/slipway-dev/slipway/internal/health"
)

// rollout is the verdict on the Deployment and its pods.
type rollout struct {
	// complete: every pod is of the current template and available.
	complete bool
	// trouble is what is wrong, or nil.
	trouble *trouble
	// deadlineExceeded: the Deployment has made no progress for long.
	deadlineExceeded bool
	// incompatible: the trouble is a pod that answers, and not as a gateway that could serve
	// the spec.
	incompatible bool
	// autoscaling is what keeps the autoscaler from scaling, or nil.
	autoscaling *trouble
	// waiting is what a pod that has no trouble waits for, or empty.
	waiting string
}

// trouble is something that should work and does not: a pod, or a route.
type trouble struct {
	reason  string
	message string
}

// answers tells whether a pod has an address and may answer. It has no patience to lose
// before its containers run.
func answers(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return pod.DeletionTimestamp.IsZero() && pod.Status.PodIP != "" && !ended &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running == nil })
}

// isReady tells whether a pod gets traffic.
func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// judgePods finds the trouble worth telling: that of the Deployment, then that of a pod.
func (s *scope) judgePods() {
	s.rollout.complete = health.RolledOut(s.deployment)
	if s.deployment.UID == "" {
		return
	}
	if verdict := health.Deployment(s.deployment); verdict.State == health.Failed {
		s.rollout.deadlineExceeded = verdict.Terminal
		s.rollout.trouble = &trouble{verdict.Reason, verdict.Message}
		if !verdict.Terminal {
			return
		}
	}
	for _, pod := range s.judgedPods() {
		verdict := health.Pod(pod, s.events[pod.UID]...)
		if s.rollout.deadlineExceeded {
			verdict = health.LatePod(pod, s.events[pod.UID]...)
		}
		switch {
		case !s.counts(pod, verdict.Reason):
		case verdict.State == health.Failed && s.rollout.deadlineExceeded:
			s.rollout.trouble.message += ": " + verdict.Message
			return
		case verdict.State == health.Failed:
			s.rollout.trouble = &trouble{verdict.Reason, verdict.Message}
			return
		case verdict.State == health.Progressing && s.rollout.waiting == "":
			s.rollout.waiting = verdict.Message
		}
	}
	if !s.rollout.deadlineExceeded && !s.rollout.complete {
		s.judgeNewcomers()
	}
}

// judgedPods are the pods that can tell why pods are missing: those of the current
// template, the newest first, or all while nobody knows it. A pod that has ended, an evicted
// one for example, stays as a record after another has taken its place, for days maybe: it
// tells something only while its template has no pod that lives. What a pod that stands by
// waits for is told elsewhere.
func (s *scope) judgedPods() []*corev1.Pod {
	template := health.CurrentTemplate(s.deployment, s.replicaSets)
	var living, ended []*corev1.Pod
	for i := range s.pods {
		pod := &s.pods[i]
		switch {
		case template != "" && pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != template, isStale(s.answers[pod.UID]):
		case pod.Status.Phase == corev1.PodFailed:
			ended = append(ended, pod)
		default:
			living = append(living, pod)
		}
	}
	slices.SortStableFunc(living, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	if len(living) == 0 && !s.rollout.complete {
		return ended
	}
	return living
}

// counts tells whether what is wrong with a pod, for that reason, is news of the spec that
// status speaks of. What is wrong with pods that a rollout replaces is not. Until the
// Deployment's controller has looked at the Deployment, nobody knows which those are, and it
// may only have been scaled: then what status says of this generation already stays.
func (s *scope) counts(pod *corev1.Pod, reason string) bool {
	if template := health.CurrentTemplate(s.deployment, s.replicaSets); template != "" {
		return pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == template
	}
	told := meta.FindStatusCondition(s.gateway.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
	return s.rollout.complete || told != nil && told.Status == metav1.ConditionTrue &&
		told.Reason == reason && told.ObservedGeneration == s.gateway.Generation
}

// judgeAutoscaler finds what keeps the autoscaler from scaling.
func (s *scope) judgeAutoscaler(now time.Time) {
	if s.gateway.Spec.Autoscaling == nil {
		return
	}
	verdict, left := health.Autoscaler(s.autoscaler, s.deployment, now)
	s.recheck.After(left)
	if verdict.State == health.Failed {
		s.rollout.autoscaling = &trouble{verdict.Reason, verdict.Message}
	}
}

// judgeNewcomers looks at the pods that run and are not ready. They get no requests, so
// what they serve does not matter yet. But a program that is no gateway, or one of a version
// that does not know a field of the spec, will never be ready, and it would take the deadline
// of the rollout to say so.
func (s *scope) judgeNewcomers() {
	for _, pod := range s.judgedPods() {
		if !answers(pod) || isReady(pod) || !s.counts(pod, slipwayv1alpha1.ReasonImageIncompatible) {
			continue
		}
		answer := s.answers[pod.UID]
		switch {
		case answer.State == replica.Incompatible:
			s.rollout.trouble = incompatible(pod, answer)
			s.rollout.incompatible = true
			return
		case rejects(answer, s.gateway.Generation):
			s.rollout.trouble = &trouble{
				slipwayv1alpha1.ReasonImageIncompatible,
				fmt.Sprintf("pod %q does not serve the spec: %s: check spec.image", pod.Name, answer.Document.Rejected.Message),
			}
			s.rollout.incompatible = true
			return
		case answer.State == replica.Silent && answer.Document == nil:
			// A gateway listens as soon as it runs. It may still be one, on a busy node.
			s.rollout.trouble = &trouble{
				slipwayv1alpha1.ReasonImageIncompatible,
				fmt.Sprintf("pod %q runs, and nothing answers on its admin port: its image is no gateway of this release, or starts slowly: check spec.image", pod.Name),
			}
			return
		}
	}
}

// rejects tells whether a pod says that its version of the gateway cannot serve the spec. As
// long as it serves no other it never gets ready.
func rejects(answer replica.Answer, generation int64) bool {
	if answer.State != replica.Answering {
		return false
	}
	rejected := answer.Document.Rejected
	return rejected != nil && rejected.Generation >= generation && rejected.Reason == slipwayv1alpha1.ReasonImageIncompatible
}

func incompatible(pod *corev1.Pod, answer replica.Answer) *trouble {
	return &trouble{
		slipwayv1alpha1.ReasonImageIncompatible,
		fmt.Sprintf("pod %q: %s: its image and the operator are of different releases: check spec.image", pod.Name, answer.Detail),
	}
}

// replicasAsked is how many pods there should be at the moment: the autoscaler's
// number where there is one.
func (s *scope) replicasAsked() int32 {
	if s.gateway.Spec.Autoscaling != nil && s.deployment.Spec.Replicas != nil {
		return *s.deployment.Spec.Replicas
	}
	return desired.MinReplicas(s.gateway)
}

// runsAsAsked tells that the pods that the spec asks for run. An autoscaler that is
// adding pods above its lower bound does not make the gateway any less ready.
func (s *scope) runsAsAsked() bool {
	status := s.deployment.Status
	if s.rollout.complete {
		// Somebody may have scaled an autoscaled Deployment to nothing.
		return status.AvailableReplicas >= desired.MinReplicas(s.gateway)
	}
	return s.gateway.Spec.Autoscaling != nil && s.deployment.UID != "" &&
		status.ObservedGeneration >= s.deployment.Generation &&
		status.UpdatedReplicas == status.Replicas && status.AvailableReplicas >= desired.MinReplicas(s.gateway)
}

// rolling tells that pods of another template are being replaced, that the first ones
// are being started, or that their number is being changed.
func (s *scope) rolling() bool {
	if s.rollout.complete || s.deployment.UID == "" {
		return false
	}
	status := s.deployment.Status
	return status.ObservedGeneration < s.deployment.Generation ||
		status.UpdatedReplicas < status.Replicas || status.Replicas != s.replicasAsked()
}

func (s *scope) rolloutMessage() string {
	message := fmt.Sprintf("Deployment %q is rolling out", s.deployment.Name)
	if s.rollout.waiting != "" {
		message += ": " + s.rollout.waiting
	}
	return message
}

// notReady says why pods are missing: reason and message.
func (s *scope) notReady() trouble {
	switch {
	case desired.MinReplicas(s.gateway) == 0:
		return trouble{slipwayv1alpha1.ReasonScaledToZero, "nothing runs, as spec.replicas says"}
	case s.rollout.trouble != nil:
		return *s.rollout.trouble
	case s.rollout.waiting != "":
		return trouble{slipwayv1alpha1.ReasonReplicasNotReady, s.rollout.waiting}
	case s.deployment.UID == "":
		return trouble{slipwayv1alpha1.ReasonReplicasNotReady, fmt.Sprintf("Deployment %q does not exist", desired.Name(s.gateway))}
	default:
		return trouble{slipwayv1alpha1.ReasonReplicasNotReady, fmt.Sprintf("Deployment %q has fewer ready pods than asked for", s.deployment.Name)}
	}
}
