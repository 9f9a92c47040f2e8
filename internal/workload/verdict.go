package workload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Verdict is what is known of the pods of a workload.
type Verdict struct {
	// Trouble is what is wrong, or nil. It need not be the rollout's fault.
	Trouble *health.Trouble
	// IsCurrent reports whether the trouble is that of a pod of the current template, or of the Deployment.
	IsCurrent bool
	// Waiting is what a pod that has no trouble waits for, or empty.
	Waiting string
	// Recheck is how long it is until the verdict may be another one though nothing changes. Zero: never.
	Recheck time.Duration
}

// Judging is how pods are judged.
type Judging struct {
	// Current are the pods of what is to run, Others are those whose trouble counts after theirs.
	Current, Others []*corev1.Pod
	// Patience is how long a pod may run without an answer to its probe before it has failed. Zero: as long as it likes,
	// because the deadline of a rollout says when it is late.
	Patience time.Duration
	// Counts reports whether what is said of a pod, for that reason, is to be told. Nil: all is.
	Counts func(pod *corev1.Pod, reason string) bool
	// Explain says what the user knows a trouble by. Nil: it is told as it is.
	Explain func(health.Verdict) *health.Trouble
	// Now is the time.
	Now time.Time
}

// Deployed is the verdict on the Deployment alone.
func (w Workload) Deployed() health.Verdict {
	if w.Looked {
		return health.DeploymentRefused(w.Deployment, w.Refusal)
	}
	return health.DeploymentOf(w.Deployment, w.ReplicaSets)
}

// Judge finds the trouble worth telling: that pods cannot be created, then that of a current pod, then that of another one.
//
// A pod that has ended, an evicted one for example, stays as a record after another has taken its place, for days maybe. It
// counts only while no current pod serves, and after all that live.
func (w Workload) Judge(how Judging) Verdict {
	if !w.Exists() {
		return Verdict{}
	}
	if verdict := w.Deployed(); verdict.State == health.Failed && !verdict.Terminal {
		return Verdict{Trouble: verdict.Trouble(), IsCurrent: true}
	}
	living, ended := splitEnded(how.Current)
	others, _ := splitEnded(how.Others)
	found := Verdict{IsCurrent: true}
	healthy := w.judgeAll(&found, living, how)
	if found.Trouble != nil {
		return found
	}
	w.judgeAll(&found, others, how)
	if found.Trouble != nil {
		found.IsCurrent = false
		return found
	}
	if !healthy && !w.currentServes() {
		w.judgeAll(&found, ended, how)
	}
	found.IsCurrent = found.Trouble != nil
	return found
}

// currentServes reports whether a pod of the current template serves, as the Deployment's controller counts. The cache may not
// show that pod yet.
func (w Workload) currentServes() bool {
	deployed := w.Deployment.Status
	return health.RolledOut(w.Deployment) || deployed.AvailableReplicas > 0 && deployed.UpdatedReplicas == deployed.Replicas
}

// judgeAll adds the trouble of the first pod that has one, and reports whether one before it is healthy.
func (w Workload) judgeAll(found *Verdict, pods []*corev1.Pod, how Judging) (healthy bool) {
	for _, pod := range pods {
		verdict, left := w.judgePod(pod, how)
		if left > 0 && (found.Recheck == 0 || left < found.Recheck) {
			found.Recheck = left
		}
		switch {
		case verdict.State == health.Healthy:
			healthy = true
		case how.Counts != nil && !how.Counts(pod, verdict.Reason):
		case verdict.State == health.Failed:
			found.Trouble = how.explain(verdict)
			return healthy
		case verdict.State == health.Progressing && found.Waiting == "":
			found.Waiting = verdict.Message
		}
	}
	return healthy
}

// judgePod judges a pod with what events tell. left is when it is late, if it is not.
func (w Workload) judgePod(pod *corev1.Pod, how Judging) (verdict health.Verdict, left time.Duration) {
	events := w.Events[pod.UID]
	verdict = health.Pod(pod, events...)
	since, unexplained := health.Unexplained(pod)
	if verdict.State != health.Progressing || !unexplained || how.Patience == 0 {
		return verdict, 0
	}
	if left := how.Patience - how.Now.Sub(since); left > 0 {
		return verdict, left
	}
	return health.LatePod(pod, events...), 0
}

func (j Judging) explain(verdict health.Verdict) *health.Trouble {
	if j.Explain != nil {
		return j.Explain(verdict)
	}
	return verdict.Trouble()
}

// Stuck is the trouble of a rollout that has made no progress for too long: what it hangs in, and the deadline. Pods that
// have never answered their probe have failed by now. deadline is what the user knows the deadline by.
func (w Workload) Stuck(found Verdict, how Judging, deadline string) *health.Trouble {
	stuck := &health.Trouble{
		Reason:  slipwayv1alpha1.ReasonProgressDeadlineExceeded,
		Message: fmt.Sprintf("Deployment %q made no progress within %s", w.Name, deadline),
	}
	cause := found.Trouble
	if cause == nil || !found.IsCurrent {
		cause = w.late(how)
	}
	if cause != nil {
		stuck.Reason = cause.Reason
		stuck.Message += ": " + cause.Message
	}
	return stuck
}

// late is the trouble of the first current pod that has had the time to start, or nil.
func (w Workload) late(how Judging) *health.Trouble {
	living, _ := splitEnded(how.Current)
	for _, pod := range living {
		verdict := health.LatePod(pod, w.Events[pod.UID]...)
		if verdict.State == health.Failed && (how.Counts == nil || how.Counts(pod, verdict.Reason)) {
			return how.explain(verdict)
		}
	}
	return nil
}

// splitEnded separates the pods that have ended with a failure from the others.
func splitEnded(pods []*corev1.Pod) (living, ended []*corev1.Pod) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodFailed {
			ended = append(ended, pod)
		} else {
			living = append(living, pod)
		}
	}
	return living, ended
}
