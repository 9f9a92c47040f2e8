package webapp

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.WebAppStatus {
	app := s.app
	deployed := s.deployment.Status
	serving, _ := s.servicePorts()
	next := slipwayv1alpha1.WebAppStatus{
		ObservedGeneration: app.Generation,
		Replicas:           deployed.Replicas,
		ReadyReplicas:      deployed.ReadyReplicas,
		Selector:           labels.Set(desired.Selector(app)).String(),
		StorageSize:        s.volumeSize(),
		Rollback:           s.rollout.rollback,
	}
	if containers := s.deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		next.Image = containers[0].Image
	}
	switch {
	case s.deployment.UID == "":
	case s.applied:
		next.Revision = s.target.name
	default:
		next.Revision = app.Status.Revision
	}
	switch {
	case s.service.UID == "":
		// A Service of that name is somebody else's, or there is none.
	case s.undecided() && app.Status.ServiceURL != "":
		next.ServiceURL = app.Status.ServiceURL
	default:
		next.ServiceURL = desired.ServiceURL(app, serving)
	}
	if good := s.lastGood(); good != nil {
		next.LastGoodRevision = good.name
	}
	if !s.rollout.startTime.IsZero() {
		next.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: s.wanted.name, StartTime: s.rollout.startTime}
		if s.undecided() {
			next.Rollout = app.Status.Rollout
		}
	}
	ready := s.ready()
	next.Summary.Replicas = fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.workload().ReplicasAsked())
	next.Summary.Reason = s.summaryReason(ready)
	conditions := append([]metav1.Condition{
		ready, status.Available(s.workload(), s.notReady()), s.progressing(), s.degraded(),
	}, s.abnormal()...)
	next.Conditions = status.Merge(app.Status.Conditions, conditions, app.Generation, metav1.NewTime(now))
	return next
}

// summaryReason is why the application is not ready, and that it is paused.
func (s *scope) summaryReason(ready metav1.Condition) string {
	reason := ready.Reason
	switch {
	case ready.Status == metav1.ConditionTrue:
		reason = ""
	case reason == slipwayv1alpha1.ReasonPaused:
		return reason
	}
	switch {
	case !s.app.Spec.Paused:
		return reason
	case reason == "":
		return slipwayv1alpha1.ReasonPaused
	default:
		return reason + "," + slipwayv1alpha1.ReasonPaused
	}
}

// terminatingStatus is the status of an application that is being deleted: as it was, but
// for what still runs.
func (s *scope) terminatingStatus(now time.Time) slipwayv1alpha1.WebAppStatus {
	next := *s.app.Status.DeepCopy()
	deployed := s.deployment.Status
	next.ObservedGeneration, next.Replicas, next.ReadyReplicas = s.app.Generation, deployed.Replicas, deployed.ReadyReplicas
	next.Summary.Replicas = fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.workload().ReplicasAsked())
	next.Summary.Reason = slipwayv1alpha1.ReasonTerminating
	conditions := status.Terminating(desired.Kind, s.app, deployed.ReadyReplicas > 0)
	next.Conditions = status.Merge(s.app.Status.Conditions, conditions, s.app.Generation, metav1.NewTime(now))
	return next
}

// trouble returns what is wrong, the most important thing first, or nil.
func (s *scope) trouble() *health.Trouble {
	if e := outcome.Worst(s.err); e != nil {
		return e.Trouble()
	}
	if e := s.config.missing; e != nil {
		return e.Trouble()
	}
	if s.rollout.failed != nil && s.rollout.rollback == nil {
		return s.rollout.failed
	}
	if s.rollout.Trouble != nil {
		return s.pullSecrets.Explain(s.rollout.Trouble)
	}
	return s.rollout.autoscaling
}

// ready is the summary: does the cluster run exactly what this spec says?
func (s *scope) ready() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionReady, reason, message)
	}
	t := s.trouble()
	switch {
	case t != nil && !s.expectedAfterRollback():
		return no(t.Reason, t.Message)
	case s.app.Spec.Paused && s.drifted:
		return no(slipwayv1alpha1.ReasonPaused, "spec.paused keeps the operator from making the spec true")
	case s.rollout.rollback != nil:
		return no(slipwayv1alpha1.ReasonRolledBack, rollbackMessage(s.rollout.rollback))
	case s.servesAsAsked() && desired.MinReplicas(s.app) == 0:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonScaledToZero, "nothing runs, as spec.replicas says")
	case s.servesAsAsked():
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReady, "every replica runs the spec and serves")
	case s.rolling():
		return no(slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	default:
		return no(slipwayv1alpha1.ReasonReplicasNotReady, s.notReady().Message)
	}
}

// servesAsAsked reports whether what the spec asks for runs, as a revision that has been rolled out.
func (s *scope) servesAsAsked() bool {
	return s.target.name != "" && s.target.name == s.wanted.name && (s.rollout.complete || s.isGood(s.wanted)) && s.workload().Serves()
}

// rolling reports whether a revision is on its way that has not been rolled out, or that pods come
// and go.
func (s *scope) rolling() bool {
	w := s.workload()
	return w.Exists() && !s.rollout.complete && (!s.isGood(s.target) || w.Rolling())
}

func (s *scope) progressing() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionProgressing, reason, message)
	}
	if c, decided := status.ProgressingAfter(outcome.Worst(s.err)); decided {
		return c
	}
	switch {
	case s.app.Spec.Paused:
		return no(slipwayv1alpha1.ReasonPaused, "spec.paused keeps the operator from changing anything")
	case s.rollout.rollback != nil && s.restored():
		return no(slipwayv1alpha1.ReasonRolledBack, fmt.Sprintf("revision %q runs", s.rollout.rollback.ToRevision))
	case s.rollout.rollback != nil:
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRollingBack,
			fmt.Sprintf("revision %q is being restored", s.rollout.rollback.ToRevision))
	case s.config.missing != nil:
		return no(s.config.missing.Reason, s.config.missing.Message)
	case s.rollout.failed != nil:
		return no(slipwayv1alpha1.ReasonRolloutFailed, s.rollout.failed.Message)
	case s.rolling():
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.rollout.Trouble == nil && !s.servesAsAsked():
		// Pods of the revision are being started in place of others.
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonReplicasNotReady, s.notReady().Message)
	default:
		return no(slipwayv1alpha1.ReasonRolloutComplete, fmt.Sprintf("revision %q runs", s.target.name))
	}
}

// expectedAfterRollback reports whether what is wrong is the failed revision, which the
// rollback has already been decided for.
func (s *scope) expectedAfterRollback() bool {
	return s.rollout.rollback != nil && outcome.Worst(s.err) == nil && s.config.missing == nil &&
		(!s.applied || !s.isGood(s.target) || !s.rollout.IsCurrent)
}

// restored reports whether a rollback has been carried out, as opposed to decided.
func (s *scope) restored() bool {
	return s.rollout.complete && s.isGood(s.target)
}

// rollbackStands reports whether another revision runs than the one asked for, because that one
// failed. While a pause keeps the operator from acting nothing is undone.
func (s *scope) rollbackStands() bool {
	return s.rollout.rollback != nil && (!s.app.Spec.Paused || !s.drifted)
}

func (s *scope) degraded() metav1.Condition {
	t := s.trouble()
	if s.rollbackStands() && (t == nil || s.expectedAfterRollback()) {
		rollback := s.rollout.rollback
		return status.True(slipwayv1alpha1.ConditionDegraded, rollback.Reason, rollbackMessage(rollback))
	}
	return status.Degraded(t)
}

// abnormal lists the conditions that exist only while they are true.
func (s *scope) abnormal() []metav1.Condition {
	list := s.pullSecrets.Condition(slipwayv1alpha1.ConditionPullSecretMissing)
	if s.app.Spec.Paused {
		list = append(list,
			status.True(slipwayv1alpha1.ConditionPaused, slipwayv1alpha1.ReasonPaused,
				"spec.paused keeps the operator from changing anything"))
	}
	worst := outcome.Worst(s.err)
	switch {
	case worst.Stalls():
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, worst.Reason, worst.Message))
	case s.app.Spec.Paused && s.drifted:
		// Nothing is undone, and nothing fails, while nothing may be changed.
		return list
	case s.rollout.rollback != nil:
		list = append(list,
			status.True(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolledBack, rollbackMessage(s.rollout.rollback)))
	case s.rollout.failed != nil:
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolloutFailed, s.rollout.failed.Message))
	}
	if rollback := s.rollout.rollback; rollback != nil {
		list = append(list, status.True(slipwayv1alpha1.ConditionRolledBack, rollback.Reason, rollbackMessage(rollback)))
	}
	return list
}

func rollbackMessage(rollback *slipwayv1alpha1.RollbackStatus) string {
	return fmt.Sprintf("revision %q failed and revision %q replaces it until the spec or its configuration asks for something else: %s",
		rollback.FromRevision, rollback.ToRevision, rollback.Message)
}

func (s *scope) rolloutMessage() string {
	message := fmt.Sprintf("Deployment %q is rolling out revision %q", s.deployment.Name, s.target.name)
	if s.rollout.Waiting != "" {
		message += ": " + s.rollout.Waiting
	}
	return message
}

// notReady says why pods are missing.
func (s *scope) notReady() health.Trouble {
	if s.config.missing != nil && s.deployment.UID == "" && s.workload().MinReplicas > 0 {
		return *s.config.missing.Trouble()
	}
	return status.NotReady(s.workload(), s.rollout.Verdict, s.err)
}
