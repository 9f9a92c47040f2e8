package main

import (
	"os"
	"testing"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// A volume that a restore has left by half is no source: there is no snapshot, nothing to verify, and no reason to try again.
func TestAHalfRestoredVolumeIsNoSource(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "first")
	b.config.Snapshot.Run, b.config.Repository.Create = "run-1", true
	b.must(t, "snapshot")
	b.write(t, "source/.slipway-restore-0f3a", "")
	b.config.Snapshot.Run = "run-2"
	b.wantKind(t, "snapshot", engine.KindHalfRestored)
	b.config.Verify = mover.Verify{Run: "run-2", ReadPercent: 100}
	b.wantKind(t, "verify", engine.KindNotFound)
	if reason := mover.Reason(string(engine.KindHalfRestored)); reason != "HalfRestored" || mover.WorthRetry(reason) {
		t.Errorf("the reason is %q, which may be tried again: %v", reason, mover.WorthRetry(reason))
	}

	if err := os.Remove(b.path("source/.slipway-restore-0f3a")); err != nil {
		t.Fatal(err)
	}
	b.must(t, "snapshot")
	b.must(t, "verify")
}
