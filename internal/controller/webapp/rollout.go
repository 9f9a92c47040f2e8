package webapp

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/workload"
)

// rollout is the verdict on the Deployment.
type rollout struct {
	// Verdict is that on the pods.
	workload.Verdict
	// complete: every pod is of the current template and available.
	complete bool
	// proven: complete, and at least one pod shows that the template works. All have been ready without interruption for as long
	// as spec.rollout.minReadySeconds says.
	proven bool
	// failed is why the rollout of the wanted revision failed, or nil.
	failed *health.Trouble
	// autoscaling is what keeps the autoscaler from scaling, or nil.
	autoscaling *health.Trouble
	// startTime is when the wanted revision was first asked for; zero when it is good.
	startTime metav1.Time
	// rollback is the decision to roll back, taken now or earlier; nil: none.
	rollback *slipwayv1alpha1.RollbackStatus
}

// workload is the Deployment and what is known of it.
func (s *scope) workload() workload.Workload {
	w := workload.Workload{
		Name: desired.Name(s.app), Deployment: s.deployment, MinReplicas: s.minReplicas(),
		ReplicaSets: s.replicaSets, Pods: s.pods, Events: s.events, Looked: s.looked, Refusal: s.refusal,
	}
	if s.autoscaled() {
		w.Autoscaler = s.autoscaler
	}
	return w
}

// judge looks at the Deployment and its pods, and decides about a rollback. It only
// decides: the decision is written to status first, and the next reconcile acts on it, so
// that a crash in between does not forget that this intent has failed.
func (s *scope) judge(now time.Time) {
	s.rollout.complete = health.RolledOut(s.deployment)
	s.judgePods(now)
	stopped := s.deployment.Status.AvailableReplicas == 0
	left, serving := s.timeToProve(now)
	s.rollout.proven = s.rollout.complete && !stopped && serving && left <= 0
	switch {
	case s.undecided():
		s.rollout.rollback = s.app.Status.Rollback
		s.rollout.startTime = s.keptStartTime()
		return
	case s.rolledBack() && s.lastGood() != nil:
		s.rollout.rollback = s.app.Status.Rollback
		return
	case s.wanted.name == "" || s.target.name != s.wanted.name || s.isGood(s.wanted) || s.app.Spec.Paused:
		return
	case !s.applied:
		// The pods are still those of another revision, which must not be taken for it.
		s.rollout.startTime = s.keptStartTime()
		return
	case s.rollout.proven, s.rollout.complete && stopped:
		return
	}
	s.rollout.startTime = s.startTime(now)
	if s.rollout.complete {
		// It serves. That it goes on doing so is to be seen, by an operator that is started meanwhile too.
		s.recheck.After(left)
		return
	}
	s.rollout.failed = s.pullSecrets.Explain(s.judgeRollout(now))
	if s.rollout.failed != nil && desired.OnFailure(s.app) == slipwayv1alpha1.FailurePolicyRollback && s.lastGood() != nil {
		s.rollout.rollback = &slipwayv1alpha1.RollbackStatus{
			Intent:       s.intent,
			Spec:         s.specIntent,
			FromRevision: s.wanted.name,
			ToRevision:   s.lastGood().name,
			Reason:       s.rollout.failed.Reason,
			Message:      s.rollout.failed.Message,
		}
	}
}

// timeToProve is how long it takes until every pod of the current template has been ready for spec.rollout.minReadySeconds.
// False: one that the Deployment counts is not ready, or not seen yet. That is for an event to change.
func (s *scope) timeToProve(now time.Time) (left time.Duration, serving bool) {
	seconds := desired.MinReadySeconds(s.app)
	if seconds == 0 {
		return 0, true
	}
	pods, _ := s.workload().Split()
	since, serving := workload.ReadySince(pods, s.deployment.Status.Replicas)
	// The pod may have become ready at the end of the second that is known.
	return time.Duration(seconds)*time.Second + time.Second - now.Sub(since), serving
}

// startTime is kept in status, where a restarted operator finds it. It has the
// precision of status: a second.
func (s *scope) startTime(now time.Time) metav1.Time {
	if kept := s.keptStartTime(); !kept.IsZero() {
		return kept
	}
	return metav1.NewTime(now.Truncate(time.Second))
}

// keptStartTime is when status says that the rollout of the wanted revision began. A
// reconcile that does not know what is wanted keeps what there is.
func (s *scope) keptStartTime() metav1.Time {
	kept := s.app.Status.Rollout
	if kept == nil || (!s.undecided() && kept.Revision != s.wanted.name) {
		return metav1.Time{}
	}
	return kept.StartTime
}

// judgeRollout returns why the rollout of the wanted revision failed, or nil: a pod of
// the new template that waiting does not help, or no progress within the deadline.
//
// The deadline is the operator's own. The Deployment's condition is not enough: it is
// not set when a Deployment is scaled up from 0 (kubernetes/kubernetes#106697).
func (s *scope) judgeRollout(now time.Time) *health.Trouble {
	w := s.workload()
	var pods []*corev1.Pod
	if w.Template() != "" {
		pods, _ = w.Split()
	}
	for _, pod := range pods {
		verdict := health.Pod(pod, s.events[pod.UID]...)
		if verdict.Terminal || verdict.State == health.Failed && s.reportedFailed(verdict.Reason) {
			return verdict.Trouble()
		}
	}
	if !s.isLate(now) {
		s.recheck.After(s.timeLeft(now))
		return nil
	}
	return w.Stuck(s.rollout.Verdict, workload.Judging{Current: pods, Explain: s.withVolume}, "spec.rollout.progressDeadlineSeconds")
}

// reportedFailed reports whether status calls the rollout of the wanted revision failed for this
// very trouble. A failure that is held stays one while its trouble lasts, though the
// kubelet tries again from time to time and then calls it by its milder name.
func (s *scope) reportedFailed(reason string) bool {
	rollout := s.app.Status.Rollout
	stalled := meta.FindStatusCondition(s.app.Status.Conditions, slipwayv1alpha1.ConditionStalled)
	degraded := meta.FindStatusCondition(s.app.Status.Conditions, slipwayv1alpha1.ConditionDegraded)
	return rollout != nil && rollout.Revision == s.wanted.name &&
		stalled != nil && stalled.Reason == slipwayv1alpha1.ReasonRolloutFailed &&
		degraded != nil && degraded.Reason == reason
}

// isLate reports whether the rollout of the wanted revision has made no progress for too long, as
// the operator or the Deployment's controller counts. The latter is mostly the first to say so.
func (s *scope) isLate(now time.Time) bool {
	return s.timeLeft(now) <= 0 || s.workload().Template() != "" && s.deadlineExceeded(now)
}

// deadlineExceeded reports whether the Deployment's controller has given this rollout up. It
// goes on saying so of the rollout before until it has looked at the new one.
func (s *scope) deadlineExceeded(now time.Time) bool {
	started := s.startTime(now)
	for _, c := range s.deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == slipwayv1alpha1.ReasonProgressDeadlineExceeded {
			return !c.LastTransitionTime.Time.Before(started.Time)
		}
	}
	return false
}

// timeLeft is how long the rollout of the wanted revision may go on without progress.
func (s *scope) timeLeft(now time.Time) time.Duration {
	// What is known of the last progress is its second: it may have come at the end of it.
	limit := time.Duration(desired.ProgressDeadlineSeconds(s.app))*time.Second + time.Second
	return limit - now.Sub(s.lastProgress(now))
}

// lastProgress is when the rollout started, or when the Deployment's controller last saw it get further. Once it was complete,
// that controller says nothing more: a pod that a node or an autoscaler brings anew is on its way since it was made, and one
// that became ready or not ready for a moment since then.
func (s *scope) lastProgress(now time.Time) time.Time {
	last, complete := s.startTime(now).Time, false
	for _, c := range s.deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionTrue && c.LastUpdateTime.After(last) {
			last, complete = c.LastUpdateTime.Time, c.Reason == reasonNewReplicaSetAvailable
		}
	}
	if !complete {
		return last
	}
	current, _ := s.workload().Split()
	for _, pod := range current {
		if at := turned(pod); at.After(last) && !at.After(now) {
			last = at
		}
	}
	return last
}

// reasonNewReplicaSetAvailable is what the Deployment's controller says of a complete rollout.
const reasonNewReplicaSetAvailable = "NewReplicaSetAvailable"

// turned is when a pod was made, or last became ready or not ready. One whose containers end and are started again makes no
// progress with that.
func turned(pod *corev1.Pod) time.Time {
	at := pod.CreationTimestamp.Time
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].RestartCount > 0 {
			return at
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// judgePods finds the trouble worth telling. A pod of a good revision that has not answered its
// probe yet is starting as long as a rollout may take without progress; whether another
// revision is late is for the rollout to say.
func (s *scope) judgePods(now time.Time) {
	w := s.workload()
	current, others := s.judgedPods()
	how := workload.Judging{Current: current, Others: others, Explain: s.withVolume, Now: now}
	if s.isGood(s.target) {
		how.Patience = time.Duration(desired.ProgressDeadlineSeconds(s.app)) * time.Second
	}
	s.rollout.Verdict = w.Judge(how)
	s.recheck.After(s.rollout.Recheck)
	var left time.Duration
	s.rollout.autoscaling, left = w.JudgeAutoscaler(now)
	s.recheck.After(left)
}

// judgedPods are the pods of what is to run, and the others whose trouble counts too. The
// pods that a rollout replaces are no matter of the spec that status speaks of: theirs do
// not count. They do where they are what runs: while nothing may be changed, or nothing
// could be, and where a rollback takes the place of what the spec asks for.
//
// Until the Deployment's controller has looked at the Deployment, nobody knows which
// template is current. A good revision has been rolled out, so all pods are of it; those of
// any other one are not older than its rollout.
func (s *scope) judgedPods() (current, others []*corev1.Pod) {
	w := s.workload()
	current, others = w.Split()
	switch {
	case !s.applied || s.rolledBack():
		return current, others
	case w.Template() != "":
		return current, nil
	case s.isGood(s.target):
		return others, nil
	}
	start := s.keptStartTime()
	return slices.DeleteFunc(others, func(pod *corev1.Pod) bool { return start.IsZero() || pod.CreationTimestamp.Before(&start) }), nil
}
