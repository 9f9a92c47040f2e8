//go:build postgres

package postgres

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The command runs in a pod of its own, with the image, the environment and the user of the server, and reaches it by its
// Service. What it writes is read back by another server, which has had nothing before.
func TestADatabaseIsBackedUpByADump(t *testing.T) {
	t.Parallel()
	f := withDatabase(t)
	f.backup(func(s *slipwayv1alpha1.BackupSpec) {
		s.Dump = &slipwayv1alpha1.BackupDump{
			Command: []string{"pg_dump", "--format=custom", ledgers},
			Env:     map[string]slipwayv1alpha1.EnvValue{"PGHOST": database}, // the socket is in the pod of the server
			Name:    "bench.dump",
		}
	})
	run, from, to := f.completed("dumped")
	if len(run.Status.Volumes) != 1 || run.Status.Volumes[0].Dump != "bench.dump" || run.Status.Files != 1 {
		t.Errorf("the run holds %d files, and its copies are %+v", run.Status.Files, run.Status.Volumes)
	}
	if live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); live != nil {
		t.Errorf("no volume was read, and the condition LiveSource is %+v", live)
	}

	f.restored("dump")
	f.Claim("again", "", claimSize)
	spec := server("again", dataFolder)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "dump", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "dump"},
	}})
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "dump", MountPath: "/dump", ReadOnly: true})
	f.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: spec})
	f.ready("again")
	f.sh("again", "createdb "+ledgers+" && pg_restore --exit-on-error --dbname="+ledgers+" /dump/bench.dump")
	f.whole("again", from, to)
}

// A dump that fails after it has written most of what it should is no copy.
func TestADumpThatFailsLateIsNoCopy(t *testing.T) {
	t.Parallel()
	f := withDatabase(t)
	f.backup(func(s *slipwayv1alpha1.BackupSpec) {
		s.Dump = &slipwayv1alpha1.BackupDump{
			Command: []string{"/bin/sh", "-c", "pg_dump --format=plain " + ledgers + " | head -c 5000000; exit 1"},
			Env:     map[string]slipwayv1alpha1.EnvValue{"PGHOST": database},
		}
	})
	f.StartRun(database, "late")
	f.Ran("late", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonDumpFailed)
	backup := &slipwayv1alpha1.Backup{}
	if err := f.Get(database, backup); err != nil || backup.Status.LastBackupTime != nil {
		t.Errorf("the Backup has a copy of %v, %v", backup.Status.LastBackupTime, err)
	}
}
