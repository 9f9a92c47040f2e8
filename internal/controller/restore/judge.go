package restore

import (
	"context"
	"fmt"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/restore/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// runProgress is how the restore has gone so far.
func (s *scope) runProgress() mover.RunProgress {
	status := s.restore.Status
	progress := mover.RunProgress{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, Attempt: s.attempt(),
		Created: s.restore.CreationTimestamp.Time,
	}
	if status.StartTime != nil {
		progress.Began = status.StartTime.Time
	}
	if status.ReasonTime != nil {
		progress.ReasonSince = status.ReasonTime.Time
	}
	if status.AttemptTime != nil {
		progress.AttemptBegan = status.AttemptTime.Time
	}
	if allowed, err := time.ParseDuration(string(s.restore.Spec.Deadline)); err == nil {
		progress.Allowed = allowed
	}
	return progress
}

// judge decides what follows from what the Job has come to.
func (r *Reconciler) judge(ctx context.Context, s *scope, now time.Time) {
	look, err := r.moves.Look(ctx, s.job, s.pods, desired.Steps, s.names(), now)
	if s.err == nil {
		s.err = err
	}
	s.seen = look.Observation
	s.seen.Trouble = s.pullSecrets.Explain(s.seen.Trouble)
	s.recheck.After(look.Again)
	s.next = s.follow(now)
	s.recheck.After(s.next.Recheck)
}

// names are what the Job uses of the repository.
func (s *scope) names() mover.Names {
	return mover.Names{
		Place: s.origin.place, Destination: s.origin.ofDestination,
		Paths:       "spec.paths",
		Credentials: mover.Named{Name: s.origin.credentials, Field: s.origin.ofCredentials},
		Encryption:  mover.Named{Name: s.origin.encryption, Field: s.origin.ofEncryption},
	}
}

func (s *scope) follow(now time.Time) mover.Next {
	progress := s.runProgress()
	switch worst := outcome.Worst(s.err); {
	case worst != nil && worst.Kind == outcome.Invalid:
		return progress.Fail(worst.Reason, worst.Message, now)
	case worst != nil && worst.Kind == outcome.Transient:
		return progress.Retry(worst.Trouble(), now)
	case worst != nil:
		return progress.Wait(worst.Trouble(), now)
	case s.err != nil:
		return progress.Wait(nil, now)
	}
	does := map[mover.Step]string{mover.StepRestore: fmt.Sprintf("PersistentVolumeClaim %q is being written", s.restore.Spec.Target.Claim)}
	next, decided := progress.Follow(s.seen, does, now)
	if decided {
		return next
	}
	result := s.result()
	if result == nil || (s.origin.snapshot != "" && result.Snapshot.ID != s.origin.snapshot) {
		return progress.FailAttempt(&health.Trouble{
			Reason: slipwayv1alpha1.ReasonMoverFailed, Message: "the Job did not say what it restored, or it is another copy",
		}, now)
	}
	next.Phase, next.Reason, next.Recheck = slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored, 0
	next.Message = "everything was written and is on disk"
	return next
}

// result is what came of the Job, or nil.
func (s *scope) result() *mover.RestoreResult {
	if result := s.seen.Results[mover.StepRestore]; result != nil && result.OK {
		return result.Restore
	}
	return nil
}

// listen reads how far the Job is.
func (r *Reconciler) listen(ctx context.Context, s *scope, now time.Time) {
	if s.err != nil || s.seen.State != mover.Working || s.next.Phase != slipwayv1alpha1.BackupRunning {
		return
	}
	s.recheck.After(transfer.ListenEvery)
	s.progress = transfer.Progress(ctx, r.logs, s.restore.Namespace, s.seen, s.restore.Status.Progress, now)
}
