//go:build backuptest

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestASnapshotIsRestoredWithoutSlipway runs the program of docs/disaster-recovery.md on a repository that Slipway made.
func TestASnapshotIsRestoredWithoutSlipway(t *testing.T) {
	b := newBench(t)
	b.write(t, "source/a", "first")
	b.write(t, "source/sub/b\n", "second")
	b.config.Snapshot.Run = "one"
	b.config.Repository.Create = true
	made := b.must(t, "snapshot")

	command := exec.CommandContext(t.Context(), "go", "run", "../../hack/restore", b.config.Repository.Filesystem.Path, made.Snapshot.ID, b.path("target"))
	command.Env = append(os.Environ(), "KOPIA_PASSWORD="+password)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if diff := cmp.Diff(contents(t, b.path("source")), contents(t, b.path("target"))); diff != "" {
		t.Errorf("restored (-source +target):\n%s", diff)
	}
}
