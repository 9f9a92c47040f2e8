package backuprun

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/kit/transfer"
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
		Attempt:            s.next.Attempt,
		StartTime:          before.StartTime,
		Volumes:            s.volumes,
		Progress:           s.progress,
		Verification:       s.verification,
		RepositoryID:       s.repositoryTold,
	}
	for _, volume := range s.volumes {
		next.Files += volume.Files
		next.Bytes += volume.Bytes
		next.AddedBytes += volume.AddedBytes
		next.Unreadable += volume.Unreadable
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
	for _, c := range s.run.Status.Conditions {
		switch c.Type {
		case slipwayv1alpha1.ConditionLiveSource:
			s.live, live = true, c.Message // of the first volume of which it is true
		case slipwayv1alpha1.ConditionCrashConsistent:
			s.crashConsistent = true
		}
	}
	if s.live {
		list = append(list, status.True(slipwayv1alpha1.ConditionLiveSource, slipwayv1alpha1.ReasonNoVolumeSnapshot, live))
	}
	if s.crashConsistent {
		list = append(list, status.True(slipwayv1alpha1.ConditionCrashConsistent, slipwayv1alpha1.ReasonVolumeSnapshotTaken,
			"pods could write to a volume, and it was read from a snapshot of one moment: the copy is what a machine has on disk when it loses power"))
	}
	return list
}
