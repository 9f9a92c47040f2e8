package apigateway

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/workload"
)

// rollout is the verdict on the Deployment and its pods.
type rollout struct {
	workload.Verdict
	// deadlineExceeded: the Deployment has made no progress for long.
	deadlineExceeded bool
	// incompatible: the trouble is a pod that answers, and not as a gateway that could serve
	// the spec.
	incompatible bool
	// autoscaling is what keeps the autoscaler from scaling, or nil.
	autoscaling *health.Trouble
}

// workload is the Deployment and what is known of it.
func (s *scope) workload() workload.Workload {
	w := workload.Workload{
		Name: desired.Name(s.gateway), Deployment: s.deployment, MinReplicas: desired.MinReplicas(s.gateway),
		ReplicaSets: s.replicaSets, Pods: s.pods, Events: s.events, Looked: s.looked, Refusal: s.refusal,
	}
	if s.gateway.Spec.Autoscaling != nil {
		w.Autoscaler = s.autoscaler
	}
	return w
}

// judgePods finds the trouble worth telling: that of the Deployment, then that of a pod. The
// deadline of a rollout is the Deployment's. After it a pod that is started again has as long.
func (s *scope) judgePods(now time.Time) {
	w := s.workload()
	how := workload.Judging{Current: s.judgedPods(), Counts: s.counts, Now: now}
	if health.Finished(s.deployment) {
		how.Patience = desired.ProgressDeadlineSeconds * time.Second
	}
	s.rollout.Verdict = w.Judge(how)
	s.recheck.After(s.rollout.Recheck)
	var left time.Duration
	s.rollout.autoscaling, left = w.JudgeAutoscaler(now)
	s.recheck.After(left)
	if s.deployment.UID != "" && w.Deployed().Terminal {
		s.rollout.deadlineExceeded = true
		s.rollout.Trouble = w.Stuck(s.rollout.Verdict, how, "its deadline")
		return
	}
	if s.rollout.Trouble == nil && !health.RolledOut(s.deployment) {
		s.judgeNewcomers()
	}
}

// judgedPods are the pods that can tell why pods are missing: those of the current
// template, or all while nobody knows it. What a pod that stands by waits for is reported
// elsewhere.
func (s *scope) judgedPods() []*corev1.Pod {
	w := s.workload()
	current, others := w.Split()
	if w.Template() == "" {
		current = others
	}
	return slices.DeleteFunc(current, func(pod *corev1.Pod) bool { return replica.IsStale(s.answers[pod.UID]) })
}

// counts reports whether what is wrong with a pod, for that reason, is news of the spec that
// status speaks of. What is wrong with pods that a rollout replaces is not. Until the
// Deployment's controller has looked at the Deployment, nobody knows which those are, and it
// may only have been scaled: then what status says of this generation already stays.
func (s *scope) counts(pod *corev1.Pod, reason string) bool {
	if template := s.workload().Template(); template != "" {
		return workload.IsOf(pod, template)
	}
	reported := meta.FindStatusCondition(s.gateway.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
	return health.RolledOut(s.deployment) || reported != nil && reported.Status == metav1.ConditionTrue &&
		reported.Reason == reason && reported.ObservedGeneration == s.gateway.Generation
}

// judgeNewcomers looks at the pods that run and are not ready. They get no requests, so
// what they serve does not matter yet. But a program that is no gateway, or one of a version
// that does not know a field of the spec, will never be ready, and it would take the deadline
// of the rollout to say so.
func (s *scope) judgeNewcomers() {
	for _, pod := range s.judgedPods() {
		if !replica.CanAnswer(pod) || replica.IsReady(pod) || !s.counts(pod, slipwayv1alpha1.ReasonImageIncompatible) {
			continue
		}
		answer := s.answers[pod.UID]
		switch {
		case answer.State == replica.Incompatible:
			s.rollout.Trouble = incompatible(pod, answer)
			s.rollout.incompatible = true
			return
		case rejects(answer, s.gateway.Generation):
			s.rollout.Trouble = &health.Trouble{
				Reason:  slipwayv1alpha1.ReasonImageIncompatible,
				Message: fmt.Sprintf("pod %q does not serve the spec: %s: check spec.image", pod.Name, answer.Document.Rejected.Message),
			}
			s.rollout.incompatible = true
			return
		case answer.State == replica.Silent && answer.Document == nil:
			// A gateway listens as soon as it runs. It may still be one, on a busy node.
			s.rollout.Trouble = &health.Trouble{
				Reason: slipwayv1alpha1.ReasonImageIncompatible,
				Message: fmt.Sprintf("pod %q runs, and nothing answers on its admin port: its image is no gateway of this release, or "+
					"starts slowly: check spec.image", pod.Name),
			}
			return
		}
	}
}

// rejects reports whether a pod says that its version of the gateway cannot serve the spec. As
// long as it serves no other it never gets ready.
func rejects(answer replica.Answer, generation int64) bool {
	if answer.State != replica.Answering {
		return false
	}
	rejected := answer.Document.Rejected
	return rejected != nil && rejected.Generation >= generation && rejected.Reason == slipwayv1alpha1.ReasonImageIncompatible
}

func incompatible(pod *corev1.Pod, answer replica.Answer) *health.Trouble {
	return &health.Trouble{
		Reason:  slipwayv1alpha1.ReasonImageIncompatible,
		Message: fmt.Sprintf("pod %q: %s: its image and the operator are of different releases: check spec.image", pod.Name, answer.Detail),
	}
}

func (s *scope) rolloutMessage() string {
	message := fmt.Sprintf("Deployment %q is rolling out", s.deployment.Name)
	if s.rollout.Waiting != "" {
		message += ": " + s.rollout.Waiting
	}
	return message
}

// notReady says why pods are missing.
func (s *scope) notReady() health.Trouble {
	return status.NotReady(s.workload(), s.rollout.Verdict, s.err)
}
