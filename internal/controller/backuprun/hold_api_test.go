//go:build apitest

package backuprun_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The workload is held until the snapshot is cut, once, and goes on before the volume is read.
func TestAVolumeIsHeldUntilItsSnapshotIsCut(t *testing.T) {
	installSnapshots(t)
	exec := &containers{}
	startWithHooks(t, exec)
	f := newFixture(t, withHooks, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "csi-data" })
	f.csiClaim(driver, "ReadWriteOnce")
	f.workloadOf("db-0", allowed, "csi-data")
	gate, thaw := make(chan struct{}), make(chan struct{})
	exec.play(f, "db-0", "/freeze", until(gate))
	exec.play(f, "db-0", "/thaw", until(thaw))
	f.run("shop-now")

	f.ran(exec, "db-0 db /freeze now")
	if err := f.staged(); err != nil {
		t.Errorf("the workload is not held yet: %v", err)
	}
	close(gate)
	f.snapshot("shop-now-0-1")
	f.ran(exec, "db-0 db /freeze now")
	f.says("shop-now-0-1", readySnapshot)
	f.ran(exec, "db-0 db /freeze now", "db-0 db /thaw")
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonReleasing)
	if h := run.Status.Hooks; !h.Captured || !h.Quiesced {
		t.Errorf("the hooks are %+v", h)
	}
	f.noJob()
	close(thaw)
	if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	run = f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	if got, want := exec.in(f), []string{"db-0 db /freeze now", "db-0 db /thaw"}; !slices.Equal(got, want) || run.Status.Attempt != 1 {
		t.Errorf("in attempt %d ran %q, want %q", run.Status.Attempt, got, want)
	}
	cut := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionCrashConsistent)
	if cut == nil || cut.Reason != slipwayv1alpha1.ReasonQuiesced || meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource) != nil {
		t.Errorf("the conditions are %+v", run.Status.Conditions)
	}
	f.nothingStaged()
}
