package restore

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// Whatever a Job and the phases come to, a Restore is Completed only when the Job says what it has restored, and that it is
// the copy that was asked for.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 60)
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := generate.From(data)
		restore := &slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{
			Name: "again", UID: "restore", CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(g.Below(20)) * time.Minute)),
		}}
		restore.Status.Attempt = int32(g.Below(4))
		s := &scope{restore: restore, job: &batchv1.Job{}, origin: origin{snapshot: generate.Pick(g, "", "s")}}
		s.err = generate.Pick[error](g, nil, nil, nil, outcome.Waitingf(0, slipwayv1alpha1.ReasonSecretNotFound, "gone"), outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "bad"), outcome.StaleCache("x"))
		s.seen = mover.Observation{
			State: generate.Pick(g, mover.Absent, mover.Starting, mover.Working, mover.Succeeded, mover.Failed), Step: mover.StepRestore,
			Results: map[mover.Step]*mover.Result{}, Trouble: &health.Trouble{Reason: generate.Pick(g, "Unreachable", "Corrupt"), Message: g.Text()},
		}
		if g.Maybe() {
			result := &mover.Result{Command: "restore", OK: g.Below(4) != 0}
			if g.Below(4) != 0 {
				result.Restore = &mover.RestoreResult{Snapshot: mover.SnapshotResult{ID: generate.Pick(g, "s", "other")}, OwnersNotKept: int64(g.Below(2))}
			}
			s.seen.Results[mover.StepRestore] = result
		}
		s.next = s.follow(now)
		status := s.status(now)
		result := s.result()
		proved := s.err == nil && s.seen.State == mover.Succeeded && result != nil && (s.origin.snapshot == "" || result.Snapshot.ID == s.origin.snapshot)
		if (status.Phase == slipwayv1alpha1.BackupCompleted) != proved {
			t.Errorf("it is %s (%s), proved is %v: %v, %+v", status.Phase, status.Reason, proved, s.err, result)
		}
		if ended := status.Phase == slipwayv1alpha1.BackupCompleted || status.Phase == slipwayv1alpha1.BackupFailed; ended != (status.CompletionTime != nil) {
			t.Errorf("it is %s, and ended at %v", status.Phase, status.CompletionTime)
		}
	})
}
