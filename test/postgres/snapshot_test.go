//go:build postgres

package postgres

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// snapshotClass is the StorageClass of volumes that can be snapshotted, and of the class of their snapshots: hack/csi.sh.
const snapshotClass = "csi"

// A volume snapshot holds what was on disk at one moment, as after a loss of power: the server repairs that when it starts.
func TestADatabaseIsBackedUpFromAVolumeSnapshot(t *testing.T) {
	t.Parallel()
	f := withDatabase(t, func(s *appsv1.StatefulSetSpec) {
		s.VolumeClaimTemplates[0].Spec.StorageClassName = ptr(snapshotClass)
	})
	f.backup(func(s *slipwayv1alpha1.BackupSpec) {
		s.VolumeSnapshot = &slipwayv1alpha1.BackupVolumeSnapshot{Policy: slipwayv1alpha1.VolumeSnapshotRequire}
	})
	run, from, to := f.completed("snapshotted")
	if len(run.Status.Volumes) != 1 || run.Status.Volumes[0].ReadFrom != slipwayv1alpha1.ReadFromSnapshot {
		t.Errorf("the copies of the run are %+v", run.Status.Volumes)
	}
	if c := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionCrashConsistent); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the condition CrashConsistent is %+v", c)
	}
	if live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); live != nil {
		t.Errorf("the volume itself was not read, and the condition LiveSource is %+v", live)
	}
	f.Eventually(func() error {
		left, err := f.RunKubectl(f.Context(), "get", "volumesnapshots", "-o", "name")
		if err != nil || left != "" {
			return fmt.Errorf("what is left of the run: %s, %v", left, err) //nolint:errorlint // it may be nil
		}
		return nil
	})

	f.restored("again")
	f.fresh("again", "again", dataFolder)
	f.whole("again", from, to)
}
