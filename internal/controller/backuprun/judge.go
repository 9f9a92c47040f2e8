package backuprun

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/text"
)

// runProgress is how the run has gone so far.
func (s *scope) runProgress() mover.RunProgress {
	status := s.run.Status
	progress := mover.RunProgress{
		Phase: status.Phase, Reason: status.Reason, Message: status.Message, Attempt: s.attempt(), Created: s.run.CreationTimestamp.Time,
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
	if allowed, err := time.ParseDuration(string(s.backup.Spec.Deadline)); err == nil {
		progress.Allowed = allowed
	}
	return progress
}

// judge decides what follows from what the Job has come to.
func (r *Reconciler) judge(ctx context.Context, s *scope, now time.Time) {
	s.verification, s.reportedRepositoryID = s.run.Status.Verification, s.run.Status.RepositoryID
	look, err := r.moves.Look(ctx, s.job, s.pods, desired.Steps, s.names(), now)
	if s.err == nil {
		s.err = err
	}
	s.seen = look.Observation
	s.recheck.After(look.Again)
	s.lookAtJob()
	for _, result := range s.seen.Results {
		if result.RepositoryID != "" {
			s.reportedRepositoryID = result.RepositoryID
		}
	}
	of := (s.live || s.crashConsistent) && s.current < len(s.volumes) && hook.IsOf(s.hooks, s.volumes[s.current].Claim, s.attempt())
	s.next = s.follow(now)
	r.settle(ctx, s, now)
	s.quiesced = of && hook.Quiet(s.hooks)
	s.recheck.After(s.next.Recheck)
}

// names are what the Job uses of the repository.
func (s *scope) names() mover.Names {
	return mover.Names{
		Place: s.place, Destination: "spec.destination of the Backup",
		Paths:       "spec.include of the Backup",
		Credentials: mover.Named{Name: s.backup.CredentialsSecret(), Field: "spec.credentials of the Backup"},
		Encryption:  mover.Named{Name: s.backup.EncryptionSecret(), Field: "spec.encryption of the Backup"},
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
	case s.current == len(s.volumes):
		return s.complete(now)
	}
	trouble := s.hookTrouble()
	if s.staging != nil {
		next := progress.Stage(*s.staging, now)
		if trouble == nil || next.Ended() || next.Attempt != s.attempt() {
			return next
		}
	}
	if trouble != nil && now.Before(progress.Deadline()) {
		return progress.FailAttempt(trouble, now)
	}
	next, decided := progress.Follow(s.seen, does(s.volumes[s.current]), now)
	if decided {
		return next
	}
	if hook.Pending(s.hooks) {
		return s.staying(
			slipwayv1alpha1.ReasonReleasing, "the copy was read back; the after hook (spec.hooks.after of the Backup) runs", now,
		)
	}
	return s.accept(now)
}

// does says what each step does.
func does(volume slipwayv1alpha1.BackupVolume) map[mover.Step]string {
	if volume.Dump != "" {
		return map[mover.Step]string{
			mover.StepSnapshot: "the output of the command in spec.dump of the Backup is being kept",
			mover.StepVerify:   "the copy of the dump is being read back",
		}
	}
	return map[mover.Step]string{
		mover.StepSnapshot: fmt.Sprintf("volume %q is being read", volume.Claim),
		mover.StepVerify:   fmt.Sprintf("the copy of volume %q is being read back", volume.Claim),
	}
}

// accept takes the copy of the present volume, which another process has read back.
func (s *scope) accept(now time.Time) mover.Next {
	made, verified := s.seen.Results[mover.StepSnapshot], s.seen.Results[mover.StepVerify]
	if problem := mover.Mismatch(made, verified, desired.Tag(s.run, s.volumes[s.current].Claim)); problem != "" {
		return s.runProgress().FailAttempt(&health.Trouble{Reason: slipwayv1alpha1.ReasonMoverFailed, Message: problem}, now)
	}
	s.volumes = slices.Clone(s.volumes)
	s.volumes[s.current] = slipwayv1alpha1.BackupVolume{
		Claim: s.volumes[s.current].Claim, Dump: s.volumes[s.current].Dump, ReadFrom: s.volumes[s.current].ReadFrom,
		SnapshotID: made.Snapshot.ID, SourceTime: sourceTime(made.Snapshot, s.volumes[s.current].SourceTime, now), Verified: true,
		ManifestDigest: made.Snapshot.Manifest,
		Files:          made.Snapshot.Stats.Files, Bytes: made.Snapshot.Stats.Bytes, AddedBytes: made.Snapshot.AddedBytes,
		Unreadable: made.Snapshot.Stats.Unreadable, Skipped: made.Snapshot.Stats.Skipped,
		Vanished: made.Snapshot.Stats.Vanished, Changed: made.Snapshot.Stats.Changed,
	}
	verification := slipwayv1alpha1.BackupVerification{Mode: desired.Mode(s.backup)}
	if s.verification != nil {
		verification = *s.verification
	}
	verification.Time = metav1.NewTime(now)
	verification.ReadFiles += verified.Verify.ReadFiles
	verification.ReadBytes += verified.Verify.ReadBytes
	s.verification = &verification
	s.current++
	if s.current == len(s.volumes) {
		return s.complete(now)
	}
	return mover.Next{
		Phase: slipwayv1alpha1.BackupRunning, Reason: slipwayv1alpha1.ReasonTransferring,
		Message: fmt.Sprintf("volume %q is next", s.volumes[s.current].Claim), Attempt: 1, Begins: now,
	}
}

// sourceTime is what moment a copy is of, as the repository tells. asked is when a snapshot of the volume was first asked for, or
// nil: what an older release has made is of that time. A node whose clock is ahead makes no copy newer than it can be.
func sourceTime(made *mover.SnapshotResult, asked *metav1.Time, now time.Time) *metav1.Time {
	at := made.SourceTime
	if at.IsZero() || made.Start.Before(at) {
		at = made.Start
	}
	if made.SourceTime.IsZero() && asked != nil && asked.Time.Before(at) {
		at = asked.Time
	}
	if at.After(now) {
		at = now
	}
	return transfer.At(at)
}

func (s *scope) complete(now time.Time) mover.Next {
	next := mover.Next{
		Phase: slipwayv1alpha1.BackupCompleted, Reason: slipwayv1alpha1.ReasonVerified, Message: s.whatWasRead(),
		Attempt: s.attempt(), Begins: s.runProgress().AttemptBegan,
	}
	if next.Begins.IsZero() {
		next.Begins = now
	}
	return next
}

// whatWasRead says how much of the copies was read back, and what they do not hold as it was.
func (s *scope) whatWasRead() string {
	var files, missing, vanished, changed int64
	for _, v := range s.volumes {
		files += v.Files
		missing += v.Unreadable
		vanished += v.Vanished
		changed += v.Changed
	}
	message := "every copy was read back"
	if v := s.verification; v != nil && v.ReadFiles < files {
		message = fmt.Sprintf("every copy was checked, and %d of %s read back (spec.verify.mode of the Backup)", v.ReadFiles,
			text.Count(files, "file"))
	}
	if s.leftOut > 0 {
		message += fmt.Sprintf("; %s of former pods left out: a Backup takes %d volumes (volumes and leftOut in status)",
			text.Count(int64(s.leftOut), "volume"), maxVolumes)
	}
	if missing > 0 {
		message += fmt.Sprintf("; %s missing, not readable (spec.allowPartial of the Backup)", text.Count(missing, "path"))
	}
	if vanished > 0 {
		message += fmt.Sprintf("; %s vanished before being read", text.Count(vanished, "path"))
	}
	if changed > 0 {
		message += fmt.Sprintf("; %s changed while being read", text.Count(changed, "file"))
	}
	return message
}
