//go:build postgres

package postgres

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// What the hooks run in the pod of the server. pg_backup_start and pg_backup_stop would not do: they have to be said in one
// session, and what the second one answers belongs into the copy, which has been read by then. pg_basebackup does both in
// one go, and leaves a folder on the volume that a server starts on: the data, and all that was written meanwhile.
var (
	before = []string{"/bin/sh", "-c", "rm -rf /data/base && pg_basebackup --pgdata=/data/base --checkpoint=fast --wal-method=stream"}
	after  = []string{"rm", "-rf", "/data/base"}
)

// hooked lets a pod allow the commands.
func hooked(t *testing.T) func(*appsv1.StatefulSetSpec) {
	t.Helper()
	type allowed struct {
		Container string   `json:"container"`
		Command   []string `json:"command"`
	}
	text, err := json.Marshal([]allowed{{container, before}, {container, after}})
	if err != nil {
		t.Fatal(err)
	}
	return func(s *appsv1.StatefulSetSpec) {
		s.Template.Annotations = map[string]string{slipwayv1alpha1.AnnotationBackupHooks: string(text)}
	}
}

func TestADatabaseIsBackedUpWithHooks(t *testing.T) {
	t.Parallel()
	f := withDatabase(t, hooked(t))
	f.backup(func(s *slipwayv1alpha1.BackupSpec) {
		s.Include = []slipwayv1alpha1.BackupPath{"base"}
		s.Hooks = &slipwayv1alpha1.BackupHooks{
			Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: slipwayv1alpha1.BackupHook{Command: before}},
			After:  &slipwayv1alpha1.BackupHook{Command: after},
		}
	})
	run, from, to := f.completed("hooked")
	if hooks := run.Status.Hooks; hooks == nil || !hooks.Quiesced || hooks.Phase != slipwayv1alpha1.HooksDone {
		t.Errorf("the hooks of the run are %+v", hooks)
	}
	if left := f.sh(databasePod, "ls /data"); left != "db" {
		t.Errorf("on the volume is %q, and the hook after the run leaves the data of the server alone", left)
	}

	f.restored("again")
	f.fresh("again", "again", "/data/base")
	f.whole("again", from, to)
}
