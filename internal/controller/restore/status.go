package restore

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/text"
)

// status computes the whole status from the scope.
func (s *scope) status(now time.Time) slipwayv1alpha1.RestoreStatus {
	before := s.restore.Status
	next := slipwayv1alpha1.RestoreStatus{
		ObservedGeneration: s.restore.Generation,
		Phase:              s.next.Phase,
		Reason:             s.next.Reason,
		Message:            text.Cut(s.next.Message, transfer.MaxMessage),
		ReasonTime:         transfer.ReasonTime(before.Reason, s.next.Reason, before.ReasonTime, now),
		Attempt:            s.next.Attempt,
		StartTime:          before.StartTime,
		Progress:           s.progress,
	}
	begun := s.next.Ended() || next.Phase == slipwayv1alpha1.BackupRunning || next.Reason == slipwayv1alpha1.ReasonRetrying
	if begun {
		if next.StartTime == nil {
			next.StartTime = transfer.At(now)
		}
		next.AttemptTime = transfer.At(s.next.Begins)
	}
	if s.next.Ended() {
		next.CompletionTime = transfer.At(now)
		next.Progress = nil
	}
	if result := s.result(); result != nil && next.Phase == slipwayv1alpha1.BackupCompleted {
		next.SnapshotID = result.Snapshot.ID
		next.SourceTime = sourceTime(&result.Snapshot, now)
		next.Files, next.Bytes = result.Files, result.Bytes
		next.OwnersNotKept, next.AttributesNotKept = result.OwnersNotKept, result.AttributesNotKept
		next.Summary.Size = text.Bytes(result.Bytes)
	}
	if next.Progress != nil {
		next.Summary.Progress = fmt.Sprintf("%d%%", next.Progress.Percent)
	}
	if next.CompletionTime != nil {
		next.Summary.Duration = next.CompletionTime.Sub(next.StartTime.Time).String()
	}
	conditions := transfer.Conditions(s.next, "the restore has ended")
	if next.OwnersNotKept > 0 {
		conditions = append(conditions, status.True(slipwayv1alpha1.ConditionOwnersNotKept, slipwayv1alpha1.ReasonNotPermitted,
			"files belong to another owner than in the copy: setting owners needs spec.mover.runAs Root"))
	}
	if !s.next.Ended() {
		conditions = append(conditions, s.pullSecrets.Condition(slipwayv1alpha1.ConditionPullSecretMissing)...)
	}
	next.Conditions = status.Merge(before.Conditions, conditions, s.restore.Generation, metav1.NewTime(now))
	return next
}

// sourceTime is what moment a copy is of, as the repository tells; an older release told only when it was read. A node whose clock
// is ahead makes no copy newer than it can be.
func sourceTime(made *mover.SnapshotResult, now time.Time) *metav1.Time {
	at := made.SourceTime
	if at.IsZero() {
		at = made.Start
	}
	if at.After(now) {
		at = now
	}
	return transfer.At(at)
}
