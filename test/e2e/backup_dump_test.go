//go:build e2e

package e2e

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const dumpLines = 400_000

// dumpOf is the line of the demo's list for the file with its dump, as hack/demo/dump.go writes it.
func dumpOf(file, note string, user int) string {
	sum, size := sha256.New(), 0
	write := func(n int, _ error) { size += n }
	write(fmt.Fprintf(sum, "-- %d lines, note %q, user %d\n", dumpLines, note, user))
	for i := range dumpLines {
		write(fmt.Fprintf(sum, "INSERT INTO orders VALUES (%d, 'customer %d', %d);\n", i, i*7919%10007, i*104729%1000003))
	}
	return fmt.Sprintf("%q -rw------- %d:%d %d bytes %x links=1", file, user, user, size, sum.Sum(nil)[:8])
}

// withDump is an application without a volume, whose environment has a secret.
func withDump(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.StartS3()
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"DUMP_NOTE": "canary-note-12"}})
	f.Create(f.app(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
	}))
	f.ready()
	return f
}

func dumps(words ...string) func(*slipwayv1alpha1.BackupSpec) {
	return func(s *slipwayv1alpha1.BackupSpec) {
		s.Source = "webapp/" + appName
		s.Dump = &slipwayv1alpha1.BackupDump{Command: words, Name: "orders.sql"}
	}
}

func testADumpIsBackedUpAndRestored(t *testing.T) {
	t.Parallel()
	f := withDump(t)
	f.backup(dataName, dumps("/slipway-demo", "dump", fmt.Sprint(dumpLines)))
	run := f.backedUp(dataName, "first")
	volume := run.Status.Volumes[0]
	if volume.Claim != slipwayv1alpha1.DumpVolume || volume.Dump != "orders.sql" || volume.Files != 1 || run.Status.Verification.ReadFiles != 1 || run.Status.Verification.ReadBytes != volume.Bytes {
		t.Errorf("the status is %+v, %+v", volume, run.Status.Verification)
	}
	if live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); live != nil {
		t.Errorf("a dump is told to be %+v", live)
	}
	f.restore("again")
	restored := f.Restored("again", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if restored.Status.OwnersNotKept != 0 || restored.Status.Files != 1 {
		t.Errorf("the restore is %+v", restored.Status)
	}
	const appUser = 65532
	if got, want := f.listed("again"), dumpOf("orders.sql", "canary-note-12", appUser); !strings.HasPrefix(got, want) || !strings.HasSuffix(strings.TrimSpace(got), "\n1 entries") {
		t.Errorf("restored was\n%s\nwant\n%s", got, want)
	}
	f.waitBackup(dataName, backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady))
}

// None of these may ever be Completed: ran fails as soon as one is.
func testADumpThatFailsLeavesNoCopy(t *testing.T) {
	t.Parallel()
	f := withDump(t)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.BackupSpec)
		reason string
		// says is part of the message.
		says string
	}{
		"fails-at-90":  {dumps("/slipway-demo", "dump", fmt.Sprint(dumpLines), "90"), slipwayv1alpha1.ReasonDumpFailed, "exit code 1: "},
		"fails-at-100": {dumps("/slipway-demo", "dump", fmt.Sprint(dumpLines), "100"), slipwayv1alpha1.ReasonDumpFailed, "no space left on device"},
		"no-command":   {dumps("/nowhere/pg_dump"), slipwayv1alpha1.ReasonDumpFailed, "exit code 127"},
		"no-output":    {dumps("/slipway-demo", "tree", "make", "/tmp/tree"), slipwayv1alpha1.ReasonSourceEmpty, ""},
	}
	for name, tc := range tests {
		f.backup(name, tc.change)
		f.StartRun(name, name)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			run := f.Ran(name, slipwayv1alpha1.BackupFailed, tc.reason)
			if !strings.Contains(run.Status.Message, tc.says) || strings.Contains(run.Status.Message, "canary") {
				t.Errorf("the message is %q, want one that says %q", run.Status.Message, tc.says)
			}
			if v := run.Status.Volumes; len(v) != 1 || v[0].SnapshotID != "" || v[0].Verified || run.Status.Attempt != 1 {
				t.Errorf("the status is %+v", run.Status)
			}
			if backup := mustGet(f, name, &slipwayv1alpha1.Backup{}); backup.Status.LastBackupTime != nil {
				t.Errorf("the Backup has a copy that there is not: %+v", backup.Status)
			}
			restore := name + "-again"
			f.restore(restore, func(s *slipwayv1alpha1.RestoreSpec) { s.Backup.Name = name })
			f.Restored(restore, slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonRepositoryNotFound)
		})
	}
}
