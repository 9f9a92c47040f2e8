package backup

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.BackupStatus {
	before := s.backup.Status
	next := slipwayv1alpha1.BackupStatus{
		ObservedGeneration: s.backup.Generation,
		LastSlot:           s.lastSlot,
		MissedSlots:        s.missed,
		RepositoryID:       s.repositoryID,
		Retention:          s.kept,
		Drill:              s.drill,
		Promise:            s.promise,
		Snapshots:          before.Snapshots,
		Size:               before.Size,
	}
	if last := s.lastBackup(); !last.IsZero() {
		next.LastBackupTime, next.LastBackupSource = &metav1.Time{Time: last}, s.source
		if s.source == "" {
			next.LastBackupSource = before.LastBackupSource
		}
	}
	if !s.plan.next.IsZero() {
		next.NextRunTime = &metav1.Time{Time: s.plan.next}
	}
	if len(s.runs) > 0 {
		newest := &s.runs[0]
		next.Phase, next.Message = newest.Status.Phase, newest.Status.Message
		next.LastRun = &slipwayv1alpha1.BackupLastRun{
			Name: newest.Name, Phase: newest.Status.Phase, Reason: newest.Status.Reason, CompletionTime: newest.Status.CompletionTime,
		}
	} else {
		next.Phase, next.LastRun = before.Phase, before.LastRun
	}
	for i := range s.runs {
		if s.runs[i].Status.Phase == slipwayv1alpha1.BackupCompleted {
			break
		}
		if s.runs[i].Status.Phase == slipwayv1alpha1.BackupFailed {
			next.ConsecutiveFailures++
		}
	}
	if s.snapshots != nil {
		next.Snapshots = *s.snapshots
	}
	if s.size != nil {
		next.Size = resource.NewQuantity(*s.size, resource.BinarySI)
	}
	ready := s.ready()
	if ready.Status != metav1.ConditionTrue {
		next.Summary.Reason = ready.Reason
	}
	if len(s.runs) == 0 {
		next.Message = ready.Message
	}
	if worst := outcome.Worst(s.err); worst != nil {
		next.Message = worst.Message
	}
	conditions := append([]metav1.Condition{ready, s.verified(), s.objective(), s.retention()}, s.abnormal()...)
	conditions = append(conditions, s.drillPassed()...)
	conditions = append(conditions, s.pullSecrets.Condition(slipwayv1alpha1.ConditionPullSecretMissing)...)
	next.Conditions = status.Merge(before.Conditions, conditions, s.backup.Generation, metav1.NewTime(now))
	return next
}

// terminatingStatus is the status of a Backup that is being deleted: as it was, but for what keeps it.
func (s *scope) terminatingStatus(now time.Time) slipwayv1alpha1.BackupStatus {
	next := *s.backup.Status.DeepCopy()
	next.ObservedGeneration = s.backup.Generation
	next.NextRunTime = nil
	next.Summary.Reason = slipwayv1alpha1.ReasonTerminating
	message := "the Backup is being deleted"
	if worst := outcome.Worst(s.err); worst != nil {
		message += ": " + worst.Message
	}
	next.Message = message
	conditions := []metav1.Condition{status.False(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonTerminating, message), s.verified()}
	next.Conditions = status.Merge(s.backup.Status.Conditions, conditions, s.backup.Generation, metav1.NewTime(now))
	return next
}

// ready is the summary: do backups work, and is the newest verified copy as new as is promised?
func (s *scope) ready() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionReady, reason, message)
	}
	ended := s.newest(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed)
	last, run := s.lastBackup(), s.troubled()
	switch worst := outcome.Worst(s.err); {
	case worst != nil:
		return no(worst.Reason, worst.Message)
	case s.missing != nil:
		return no(s.missing.Reason, s.missing.Message)
	case ended != nil && ended.Status.Phase == slipwayv1alpha1.BackupFailed:
		return no(slipwayv1alpha1.ReasonRunFailed, "BackupRun \""+ended.Name+"\" failed ("+ended.Status.Reason+"): "+ended.Status.Message)
	case last.IsZero() && run != nil:
		return no(run.Status.Reason, fmt.Sprintf("BackupRun %q makes no copy yet: %s", run.Name, run.Status.Message))
	case !s.plan.met(last) && last.IsZero():
		return no(slipwayv1alpha1.ReasonNoCopy, s.noCopy("there is no verified copy yet, though the schedule promises one"))
	case !s.plan.met(last):
		return no(slipwayv1alpha1.ReasonCopyTooOld, "the newest verified copy is older than the schedule promises")
	case s.drillFails():
		return no(slipwayv1alpha1.ReasonDrillFailed, "the newest drill that has ended failed: the condition DrillPassed says why")
	case last.IsZero() && s.backup.Spec.Schedule == "":
		return no(slipwayv1alpha1.ReasonNoCopy, s.noCopy("there is no verified copy yet"))
	case last.IsZero():
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonNoRun,
			"the first run is planned; there is no verified copy yet")
	case run != nil:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReady, fmt.Sprintf(
			"the newest verified copy is as new as is promised; BackupRun %q makes none yet (%s): %s", run.Name, run.Status.Reason,
			run.Status.Message))
	default:
		return status.True(slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ReasonReady, "the newest verified copy is as new as is promised")
	}
}

// verified says how the newest run that has ended did. A copy of what was in spec.source before says nothing about what is there
// now.
func (s *scope) verified() metav1.Condition {
	ended := s.newest(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed)
	switch {
	case ended == nil && !s.lastBackup().IsZero():
		// The objects of its runs were deleted. What is known stays true.
		for _, c := range s.backup.Status.Conditions {
			if c.Type == slipwayv1alpha1.ConditionVerified {
				return c
			}
		}
		return status.True(slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ReasonVerified, "every copy of an earlier run was verified")
	case ended == nil:
		return status.False(slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ReasonNoRun, "no run has ended yet")
	case ended.Status.Phase == slipwayv1alpha1.BackupCompleted && len(ended.Status.Volumes) > 0 && !s.counts(ended):
		return status.False(slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ReasonNoCopy, s.noCopy("there is no verified copy yet"))
	case ended.Status.Phase == slipwayv1alpha1.BackupCompleted:
		return status.True(slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ReasonVerified,
			"BackupRun \""+ended.Name+"\": "+ended.Status.Message)
	default:
		return status.False(slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ReasonRunFailed, "BackupRun \""+ended.Name+"\" failed")
	}
}

// objective says whether the newest verified copy is as new as is promised.
func (s *scope) objective() metav1.Condition {
	last := s.lastBackup()
	switch {
	case s.backup.Spec.Schedule != "" && s.promise == nil:
		return status.False(slipwayv1alpha1.ConditionRPOMet, slipwayv1alpha1.ReasonInvalid,
			"nobody can understand spec.schedule, so no run starts")
	case s.backup.Spec.Schedule == "":
		return status.True(slipwayv1alpha1.ConditionRPOMet, slipwayv1alpha1.ReasonNoSchedule,
			"there is no schedule, so nothing is promised")
	case s.plan.met(last):
		return status.True(slipwayv1alpha1.ConditionRPOMet, slipwayv1alpha1.ReasonWithinObjective,
			"the newest verified copy is as new as the schedule promises")
	case last.IsZero():
		return status.False(slipwayv1alpha1.ConditionRPOMet, slipwayv1alpha1.ReasonNoCopy,
			s.noCopy("there is no verified copy, though the schedule promises one"))
	default:
		return status.False(slipwayv1alpha1.ConditionRPOMet, slipwayv1alpha1.ReasonCopyTooOld,
			"the newest verified copy is older than the schedule promises")
	}
}

// retention says whether what is not to be kept was removed.
func (s *scope) retention() metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return status.False(slipwayv1alpha1.ConditionRetentionApplied, reason, message)
	}
	run := s.newest(slipwayv1alpha1.BackupCompleted)
	switch {
	case desired.Retention(s.backup) == nil && (!s.covers(s.kept, run) || s.kept.Reason == ""):
		return status.True(slipwayv1alpha1.ConditionRetentionApplied, slipwayv1alpha1.ReasonNoRetention,
			"everything is kept: neither spec.retention nor spec.retentionPolicy is set")
	case run == nil:
		return status.True(slipwayv1alpha1.ConditionRetentionApplied, slipwayv1alpha1.ReasonNoRun,
			"nothing is to be removed: no run has completed")
	case !s.covers(s.kept, run) && s.busy != "":
		return no(slipwayv1alpha1.ReasonRepositoryBusy, s.busy)
	case !s.covers(s.kept, run) && s.stuck != nil:
		return no(s.stuck.Reason, "copies that are not to be kept are not removed yet: "+s.stuck.Message)
	case !s.covers(s.kept, run):
		return no(slipwayv1alpha1.ReasonRetentionPending, "copies that are not to be kept are being removed")
	case s.kept.Reason != "":
		return no(s.kept.Reason, s.kept.Message)
	default:
		return status.True(slipwayv1alpha1.ConditionRetentionApplied, slipwayv1alpha1.ReasonRetentionApplied,
			"what is not to be kept was removed")
	}
}

// abnormal lists the conditions that exist only while they are true.
func (s *scope) abnormal() []metav1.Condition {
	var list []metav1.Condition
	if s.backup.Spec.Suspend {
		list = append(list,
			status.True(slipwayv1alpha1.ConditionSuspended, slipwayv1alpha1.ReasonSuspended, "spec.suspend lets no run start"))
	}
	if worst := outcome.Worst(s.err); worst.Stalls() {
		list = append(list, status.True(slipwayv1alpha1.ConditionStalled, worst.Reason, worst.Message))
	}
	if run := s.newestCopy(); run != nil {
		for _, c := range run.Status.Conditions {
			if c.Type == slipwayv1alpha1.ConditionLiveSource || c.Type == slipwayv1alpha1.ConditionCrashConsistent {
				list = append(list, status.True(c.Type, c.Reason, c.Message))
			}
		}
	}
	if run := s.newest(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed); run != nil {
		for _, c := range run.Status.Conditions {
			if c.Type == slipwayv1alpha1.ConditionHookAfterFailed {
				list = append(list, status.True(c.Type, c.Reason, c.Message))
			}
		}
	}
	return list
}
