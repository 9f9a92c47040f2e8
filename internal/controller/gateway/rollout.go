package gateway

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/dataplane"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/workload"
)

// rollout is the verdict on the Deployment and its pods.
type rollout struct {
	// trouble is what keeps pods from serving, or nil.
	trouble *health.Trouble
	// waiting is what a pod that has no trouble waits for, or empty.
	waiting string
}

// workload is the Deployment and what is known of it.
func (s *scope) workload() workload.Workload {
	w := workload.Workload{
		Name: desired.Name(s.gateway), Deployment: s.deployment, MinReplicas: s.minReplicas(),
		ReplicaSets: s.replicaSets, Pods: workload.PodsOf(s.deployment, s.replicaSets, s.pods), Events: s.events,
		Looked: s.looked, Refusal: s.refusal,
	}
	if s.parameters.Autoscaling != nil {
		w.Autoscaler = s.autoscaler
	}
	return w
}

// minReplicas is the number of pods that should run at the least: that of the parameters, or that of the Deployment where
// somebody else sets it.
func (s *scope) minReplicas() int32 {
	if s.parameters.Autoscaling == nil && s.parameters.Replicas == nil && s.deployment.Spec.Replicas != nil {
		return *s.deployment.Spec.Replicas
	}
	return desired.MinReplicas(s.parameters)
}

// listen reads the events of pods whose status does not say what keeps them from serving.
func (r *Reconciler) listen(ctx context.Context, s *scope) {
	warnings, again := r.kit.Events.Listen(ctx, s.judgedPods(), false)
	s.events = warnings
	s.recheck.After(again.In())
}

// judgedPods are the pods that can tell why pods are missing: those of the current template, or all while nobody knows it.
func (s *scope) judgedPods() []*corev1.Pod {
	w := s.workload()
	current, others := w.Split()
	if w.Template() == "" {
		return others
	}
	return current
}

// judgeRollout finds what keeps pods from serving. After the deadline of the rollout a pod that is started again has as long.
func (s *scope) judgeRollout(now time.Time) {
	if s.deployment.UID == "" {
		return
	}
	w := s.workload()
	how := workload.Judging{Current: s.judgedPods(), Explain: explain, Now: now}
	if health.Finished(s.deployment) {
		how.Patience = dataplane.ProgressDeadlineSeconds * time.Second
	}
	verdict := w.Judge(how)
	s.recheck.After(verdict.Recheck)
	s.rollout = rollout{trouble: s.pullSecrets.Explain(verdict.Trouble), waiting: verdict.Waiting}
	if w.Deployed().Terminal {
		s.rollout.trouble = s.pullSecrets.Explain(w.Stuck(verdict, how, "its deadline"))
	}
	if s.rollout.trouble != nil {
		return
	}
	trouble, left := w.JudgeAutoscaler(now)
	s.recheck.After(left)
	s.rollout.trouble = trouble
}

// explain names what the image and its credentials come from: a Gateway has no fields for them.
func explain(verdict health.Verdict) *health.Trouble {
	trouble := verdict.Trouble()
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonImageNotFound:
		trouble.Message = strings.Replace(trouble.Message, "check spec.image", "check --gateway-image of the operator", 1)
	case slipwayv1alpha1.ReasonImagePullDenied:
		trouble.Message += " of its GatewayParameters"
	}
	return trouble
}

// noReplica says why no pod serves, as Programmed puts it.
func (s *scope) noReplica() (gatewayv1.GatewayConditionReason, string) {
	trouble := s.workload().NotReady(workload.Verdict{Trouble: s.rollout.trouble, Waiting: s.rollout.waiting})
	message := "no pod of the Gateway is ready: " + trouble.Message
	if s.rollout.trouble != nil {
		return gatewayv1.GatewayReasonNoResources, message
	}
	return gatewayv1.GatewayReasonPending, message
}

// degraded tells what keeps pods from serving, or from being scaled, though others may serve; nil where nothing does.
func (s *scope) degraded() *metav1.Condition {
	if trouble := s.rollout.trouble; trouble != nil {
		return new(status.True(ConditionDegraded, trouble.Reason, trouble.Message))
	}
	if lack := s.served.refusing(); lack != nil {
		return new(status.True(ConditionDegraded, lack.reason, lack.message))
	}
	return nil
}
