package backuprun

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// someResult makes what a step may have said, or nil.
func someResult(s *generate.Source, step mover.Step, tag string) *mover.Result {
	if s.Below(4) == 0 {
		return nil
	}
	r := &mover.Result{
		Command: generate.Pick(s, string(step), string(step), "other"), OK: s.Below(4) != 0,
		Kind: generate.Pick(s, "", "Corrupt", "Unreachable", "New"), Message: s.Text(), RepositoryID: generate.Pick(s, "r", "r", "other", ""),
	}
	id := generate.Pick(s, "s", "s", "other")
	if s.Below(5) != 0 {
		r.Snapshot = &mover.SnapshotResult{ID: id, Run: generate.Pick(s, tag, tag, "other"), Start: time.Unix(int64(s.Byte()), 0), Stats: mover.Stats{Files: int64(s.Below(2)), Bytes: 7}}
	}
	if s.Below(5) != 0 {
		r.Verify = &mover.VerifyResult{Files: int64(s.Below(2)), Bytes: 7}
	}
	for range s.Below(3) {
		r.Snapshots = append(r.Snapshots, mover.SnapshotLine{ID: id})
	}
	return r
}

// Whatever a Job and the phases come to, a run is Completed only when every volume has a copy that two processes agree on.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 60)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := generate.From(data)
		run := &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: "shop-now", UID: "run", CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(g.Below(20)) * time.Minute))}}
		run.Status.Attempt = int32(g.Below(4))
		s := &scope{run: run, backup: &slipwayv1alpha1.Backup{}, job: &batchv1.Job{}}
		for i := range 1 + g.Below(3) {
			s.volumes = append(s.volumes, slipwayv1alpha1.BackupVolume{Claim: string(rune('a' + i)), Verified: g.Maybe()})
		}
		for s.current < len(s.volumes) && s.volumes[s.current].Verified {
			s.current++
		}
		s.err = generate.Pick[error](g, nil, nil, outcome.Waitingf(0, slipwayv1alpha1.ReasonSecretNotFound, "gone"), outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "bad"), outcome.StaleCache("x"))
		s.verification, s.reportedRepositoryID = run.Status.Verification, run.Status.RepositoryID
		claim := ""
		if s.current < len(s.volumes) {
			claim = s.volumes[s.current].Claim
		}
		tag := desired.Tag(run, claim)
		s.seen = mover.Observation{State: generate.Pick(g, mover.Absent, mover.Starting, mover.Working, mover.Succeeded, mover.Failed), Step: generate.Pick(g, mover.StepSnapshot, mover.StepVerify), Results: map[mover.Step]*mover.Result{}}
		if s.seen.State == mover.Failed {
			s.seen = mover.Observe(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "j", DeletionTimestamp: &metav1.Time{Time: now}}}, nil, desired.Steps)
			s.seen.Results = map[mover.Step]*mover.Result{}
		}
		for _, step := range desired.Steps {
			if r := someResult(g, step, tag); r != nil {
				s.seen.Results[step] = r
			}
		}
		made, verified := s.seen.Results[mover.StepSnapshot], s.seen.Results[mover.StepVerify]
		open := len(s.volumes) - s.current
		rest := true
		for _, v := range s.volumes[min(s.current+1, len(s.volumes)):] {
			rest = rest && v.Verified
		}
		s.next = s.follow(now)
		status := s.status(now)

		proved := open == 0 || (open >= 1 && s.seen.State == mover.Succeeded && made != nil && verified != nil &&
			mover.Mismatch(made, verified, tag) == "")
		if status.Phase == slipwayv1alpha1.BackupCompleted && (s.err != nil || !proved || (open > 1 && !rest)) {
			t.Errorf("Completed without a proof: %+v, %v, results %+v %+v", s.volumes, s.err, made, verified)
		}
		if status.Phase == slipwayv1alpha1.BackupCompleted {
			for _, v := range status.Volumes {
				if !v.Verified {
					t.Errorf("Completed, and %q is not verified", v.Claim)
				}
			}
		}
		if ended := status.Phase == slipwayv1alpha1.BackupCompleted || status.Phase == slipwayv1alpha1.BackupFailed; ended != (status.CompletionTime != nil) || status.Reason == "" && s.err == nil {
			t.Errorf("phase %s, reason %q, completion %v", status.Phase, status.Reason, status.CompletionTime)
		}
		again := s.status(now)
		if len(again.Conditions) != len(status.Conditions) {
			t.Errorf("the same again has %v, not %v", again.Conditions, status.Conditions)
		}
	})
}
