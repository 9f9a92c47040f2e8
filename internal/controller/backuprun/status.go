package backuprun

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/text"
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.BackupRunStatus {
	before := s.run.Status
	next := slipwayv1alpha1.BackupRunStatus{
		ObservedGeneration: s.run.Generation,
		Phase:              s.next.Phase,
		Reason:             s.next.Reason,
		Message:            text.Cut(s.next.Message, transfer.MaxMessage),
		ReasonTime:         transfer.ReasonTime(before.Reason, s.next.Reason, before.ReasonTime, now),
		Attempt:            s.next.Attempt,
		StartTime:          before.StartTime,
		Source:             s.source,
		Volumes:            s.volumes,
		LeftOut:            s.leftOut,
		Progress:           s.progress,
		Verification:       s.verification,
		RepositoryID:       s.reportedRepositoryID,
		Hooks:              s.hooks,
	}
	for _, volume := range s.volumes {
		next.Files += volume.Files
		next.Bytes += volume.Bytes
		next.AddedBytes += volume.AddedBytes
		next.Unreadable += volume.Unreadable
		next.Vanished += volume.Vanished
		next.Changed += volume.Changed
	}
	begun := s.next.Ended() || next.Phase == slipwayv1alpha1.BackupRunning || next.Reason == slipwayv1alpha1.ReasonRetrying
	if begun && next.StartTime == nil {
		next.StartTime = transfer.At(now)
	}
	if begun {
		next.AttemptTime = transfer.At(s.next.Begins)
	}
	if s.next.Ended() {
		next.CompletionTime = transfer.At(now)
		next.Progress = nil
	}
	next.Summary = s.summary(next)
	next.Conditions = status.Merge(before.Conditions, s.conditions(), s.run.Generation, metav1.NewTime(now))
	return next
}

// summary is what kubectl get shows.
func (s *scope) summary(next slipwayv1alpha1.BackupRunStatus) slipwayv1alpha1.TransferSummary {
	var summary slipwayv1alpha1.TransferSummary
	if next.Progress != nil {
		summary.Progress = fmt.Sprintf("%d%%", next.Progress.Percent)
		if next.Progress.TotalBytes == 0 && next.Progress.Bytes > 0 {
			summary.Progress = text.Bytes(next.Progress.Bytes) // of a dump nobody knows how much there will be
		}
	}
	if next.Verification != nil {
		summary.Size = fmt.Sprintf("%s (+%s)", text.Bytes(next.Bytes), text.Bytes(next.AddedBytes))
	}
	if next.CompletionTime != nil {
		summary.Duration = next.CompletionTime.Sub(next.StartTime.Time).String()
	}
	return summary
}

// conditions are those of every transfer, and that pods could write to a volume meanwhile.
func (s *scope) conditions() []metav1.Condition {
	list := transfer.Conditions(s.next, "the run has ended")
	live := "pods could write to a volume while it was read: the copy is at best what a machine has on disk when it loses power"
	if s.noSnapshot != "" {
		live += ". No snapshot of the volume was taken: " + s.noSnapshot
	}
	list = append(list, s.sourceConditions(s.live,
		status.True(slipwayv1alpha1.ConditionLiveSource, slipwayv1alpha1.ReasonNoVolumeSnapshot, live),
		status.True(slipwayv1alpha1.ConditionLiveSource, slipwayv1alpha1.ReasonQuiesced,
			"pods could write to a volume while it was read, and the before hook had succeeded in all of them: the copy is as good as "+
				"what the hook does"))...)
	list = append(list, s.sourceConditions(s.crashConsistent,
		status.True(slipwayv1alpha1.ConditionCrashConsistent, slipwayv1alpha1.ReasonVolumeSnapshotTaken,
			"pods could write to a volume, and it was read from a snapshot of one moment: the copy is what a machine has on disk when it "+
				"loses power"),
		status.True(slipwayv1alpha1.ConditionCrashConsistent, slipwayv1alpha1.ReasonQuiesced,
			"pods could write to a volume, and it was read from a snapshot of one moment, before which the before hook had succeeded in "+
				"all of them"))...)
	return append(list, s.hookConditions()...)
}

// sourceConditions are one condition of the volumes, or none. It is open where nobody held the volume, and held where the
// before hook did. Once open, it stays as it was of the first volume of which that is true.
func (s *scope) sourceConditions(isTrue bool, open, held metav1.Condition) []metav1.Condition {
	before := meta.FindStatusCondition(s.run.Status.Conditions, open.Type)
	switch {
	case before != nil && (before.Reason == open.Reason || !isTrue || s.quiesced):
		return []metav1.Condition{*before}
	case !isTrue:
		return nil
	case s.quiesced:
		return []metav1.Condition{held}
	default:
		return []metav1.Condition{open}
	}
}

// hookConditions say that an after hook did not run. That stays: nobody has released the workload since.
func (s *scope) hookConditions() []metav1.Condition {
	if trouble := hook.AfterTrouble(s.hooks); trouble != nil {
		return []metav1.Condition{status.True(slipwayv1alpha1.ConditionHookAfterFailed, trouble.Reason, trouble.Message)}
	}
	if before := meta.FindStatusCondition(s.run.Status.Conditions, slipwayv1alpha1.ConditionHookAfterFailed); before != nil {
		return []metav1.Condition{*before}
	}
	return nil
}

// terminatingStatus is the status of a run that is being deleted: how its hooks do is all that is still news.
func (s *scope) terminatingStatus(now time.Time) slipwayv1alpha1.BackupRunStatus {
	next := *s.run.Status.DeepCopy()
	next.Hooks = s.hooks
	if hook.AfterTrouble(s.hooks) == nil {
		return next
	}
	list := slices.DeleteFunc(next.Conditions, func(c metav1.Condition) bool { return c.Type == slipwayv1alpha1.ConditionHookAfterFailed })
	next.Conditions = status.Merge(s.run.Status.Conditions, append(list, s.hookConditions()...), s.run.Generation, metav1.NewTime(now))
	return next
}
