package webapp

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
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
		ServiceURL:         desired.ServiceURL(app, serving),
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
	if s.undecided() && app.Status.ServiceURL != "" {
		next.ServiceURL = app.Status.ServiceURL
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
	next.Summary.Replicas = fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.replicasAsked())
	next.Summary.Reason = s.summaryReason(ready)
	conditions := append([]metav1.Condition{ready, s.available(), s.progressing(), s.degraded()}, s.abnormal()...)
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
	next.Summary.Replicas = fmt.Sprintf("%d/%d", deployed.ReadyReplicas, s.minReplicas())
	next.Summary.Reason = slipwayv1alpha1.ReasonTerminating
	conditions := status.Terminating(desired.Kind, s.app, deployed.ReadyReplicas > 0)
	next.Conditions = status.Merge(s.app.Status.Conditions, conditions, s.app.Generation, metav1.NewTime(now))
	return next
}

// replicasAsked is how many pods there should be at the moment: the autoscaler's
// number where there is one.
func (s *scope) replicasAsked() int32 {
	if s.autoscaled() && s.deployment.Spec.Replicas != nil {
		return *s.deployment.Spec.Replicas
	}
	return s.minReplicas()
}

// trouble returns what is wrong, the most important thing first, or nil.
func (s *scope) trouble() *trouble {
	if e := outcome.Worst(s.err); e != nil {
		return &trouble{reason: e.Reason, message: e.Message}
	}
	if e := s.config.missing; e != nil {
		return &trouble{reason: e.Reason, message: e.Message}
	}
	if s.rollout.failed != nil && s.rollout.rollback == nil {
		return s.rollout.failed
	}
	if s.rollout.trouble != nil {
		return s.rollout.trouble
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
		return no(t.reason, t.message)
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
		return no(slipwayv1alpha1.ReasonReplicasNotReady, s.notReadyMessage())
	}
}

// servesAsAsked tells that what the spec asks for runs. An autoscaler that is adding
// pods above its lower bound does not make the application any less ready.
func (s *scope) servesAsAsked() bool {
	if s.target.name == "" || s.target.name != s.wanted.name {
		return false
	}
	deployed := s.deployment.Status
	if s.rollout.complete {
		// An autoscaled Deployment may have been scaled to nothing by hand.
		return deployed.AvailableReplicas >= desired.MinReplicas(s.app)
	}
	return s.app.Spec.Autoscaling != nil && s.isGood(s.wanted) &&
		deployed.ObservedGeneration >= s.deployment.Generation &&
		deployed.UpdatedReplicas == deployed.Replicas && deployed.AvailableReplicas >= desired.MinReplicas(s.app)
}

// rolling tells that pods of another template are being replaced, that the first ones
// are being started, or that their number is being changed.
func (s *scope) rolling() bool {
	if s.rollout.complete || s.deployment.UID == "" {
		return false
	}
	deployed := s.deployment.Status
	return !s.isGood(s.target) || deployed.ObservedGeneration < s.deployment.Generation ||
		deployed.UpdatedReplicas < deployed.Replicas || deployed.Replicas != s.replicasAsked()
}

func (s *scope) available() metav1.Condition {
	switch {
	case s.deployment.Status.ReadyReplicas > 0:
		return status.True(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonReplicasReady, "at least one replica serves")
	case desired.MinReplicas(s.app) == 0:
		return status.False(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonScaledToZero, "nothing runs, as spec.replicas says")
	default:
		return status.False(slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ReasonReplicasNotReady, s.notReadyMessage())
	}
}

func (s *scope) progressing() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionProgressing, reason, message)
	}
	worst := outcome.Worst(s.err)
	switch {
	case worst.Stalls():
		return no(worst.Reason, worst.Message)
	case worst != nil:
		return status.True(slipwayv1alpha1.ConditionProgressing, worst.Reason, worst.Message)
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
		return no(slipwayv1alpha1.ReasonRolloutFailed, s.rollout.failed.message)
	case s.rolling():
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonRolloutInProgress, s.rolloutMessage())
	case s.rollout.trouble == nil && s.available().Reason == slipwayv1alpha1.ReasonReplicasNotReady:
		// Pods of the revision are being started in place of others.
		return status.True(slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ReasonReplicasNotReady, s.notReadyMessage())
	default:
		return no(slipwayv1alpha1.ReasonRolloutComplete, fmt.Sprintf("revision %q runs", s.target.name))
	}
}

// expectedAfterRollback tells that what is wrong is the failed revision, which the
// rollback has already been decided for.
func (s *scope) expectedAfterRollback() bool {
	return s.rollout.rollback != nil && outcome.Worst(s.err) == nil && s.config.missing == nil &&
		(!s.applied || !s.isGood(s.target) || !s.rollout.troubleIsCurrent)
}

// restored tells that a rollback has been carried out, as opposed to decided.
func (s *scope) restored() bool {
	return s.rollout.complete && s.isGood(s.target)
}

// rollbackStands tells that another revision runs than the one asked for, because that one
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
	if t != nil {
		return status.True(slipwayv1alpha1.ConditionDegraded, t.reason, t.message)
	}
	return status.False(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonAsExpected, "nothing is wrong")
}

// abnormal lists the conditions that exist only while they are true.
func (s *scope) abnormal() []metav1.Condition {
	var list []metav1.Condition
	if s.app.Spec.Paused {
		list = append(list, status.True(slipwayv1alpha1.ConditionPaused, slipwayv1alpha1.ReasonPaused, "spec.paused keeps the operator from changing anything"))
	}
	worst := outcome.Worst(s.err)
	switch {
	case worst.Stalls():
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, worst.Reason, worst.Message))
	case s.app.Spec.Paused && s.drifted:
		// Nothing is undone, and nothing fails, while nothing may be changed.
		return list
	case s.rollout.rollback != nil:
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolledBack, rollbackMessage(s.rollout.rollback)))
	case s.rollout.failed != nil:
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ReasonRolloutFailed, s.rollout.failed.message))
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
	if s.rollout.waiting != "" {
		message += ": " + s.rollout.waiting
	}
	return message
}

func (s *scope) notReadyMessage() string {
	switch {
	case s.rollout.trouble != nil:
		return s.rollout.trouble.message
	case s.config.missing != nil && s.deployment.UID == "":
		return s.config.missing.Message
	case s.rollout.waiting != "":
		return s.rollout.waiting
	case s.deployment.UID == "":
		return fmt.Sprintf("Deployment %q does not exist", desired.Name(s.app))
	default:
		return fmt.Sprintf("Deployment %q has fewer ready pods than asked for", s.deployment.Name)
	}
}
