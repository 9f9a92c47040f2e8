package mover

import (
	"testing"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

func TestWhatFollowsWhileASnapshotIsTaken(t *testing.T) {
	const pending, runs, ends = slipwayv1alpha1.BackupPending, slipwayv1alpha1.BackupRunning, slipwayv1alpha1.BackupFailed
	// It waited for half an hour until its turn came.
	fresh := RunProgress{Attempt: 1, Created: noon.Add(-30 * time.Minute), Allowed: time.Hour}
	began := RunProgress{Phase: runs, Attempt: 1, Began: noon, AttemptBegan: noon, Created: noon, Allowed: time.Hour}
	third := began
	third.Attempt = 3
	taking := Staging{Does: "it is being taken", Since: noon}
	failed := Staging{Does: "it is being taken", Since: noon, Failure: "the driver has no space"}
	late := began
	late.Began = noon.Add(-time.Hour)
	tests := map[string]struct {
		got     Next
		phase   slipwayv1alpha1.BackupPhase
		reason  string
		attempt int32
		recheck time.Duration
	}{
		"it begins, after a long time in the queue": {fresh.Stage(taking, noon), runs, "TakingSnapshot", 1, 2 * time.Second},
		"it takes a while":                          {began.Stage(taking, noon.Add(9*time.Minute)), runs, "TakingSnapshot", 1, 2 * time.Second},
		"the last second":                           {began.Stage(taking, noon.Add(10*time.Minute-time.Second)), runs, "TakingSnapshot", 1, time.Second},
		"it is not ready in time":                   {began.Stage(taking, noon.Add(10*time.Minute)), ends, "VolumeSnapshotFailed", 1, 0},
		"it failed":                                 {began.Stage(failed, noon.Add(time.Minute)), pending, "Retrying", 2, 30 * time.Second},
		"it failed for the third time":              {third.Stage(failed, noon.Add(time.Minute)), ends, "VolumeSnapshotFailed", 3, 0},
		"the deadline":                              {late.Stage(taking, noon), ends, "DeadlineExceeded", 1, 0},
		"held, with the reason":                     {began.Hold(&health.Trouble{Reason: "Forbidden"}, noon.Add(30*time.Minute)), runs, "Forbidden", 1, 0},
		"held, though it never ran":                 {fresh.Hold(nil, noon), pending, "", 1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.got.Phase != tc.phase || tc.got.Reason != tc.reason || tc.got.Attempt != tc.attempt || tc.got.Recheck != tc.recheck {
				t.Errorf("got %+v, want %s, %s, attempt %d, another look after %v", tc.got, tc.phase, tc.reason, tc.attempt, tc.recheck)
			}
		})
	}
}
