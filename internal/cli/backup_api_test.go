//go:build apitest

package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func (f *fixture) createBackup(name string) {
	f.Helper()
	backup := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Schedule: "@daily", Destination: "s3://backups"},
	}
	if _, err := f.Backups().Create(f.Context(), backup, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
}

// runs are the names of the namespace's BackupRuns, and restores those of its Restores, the oldest first.
func (f *fixture) transfers() (runs, restores []string) {
	f.Helper()
	allRuns, err := f.BackupRuns().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range allRuns.Items {
		runs = append(runs, allRuns.Items[i].Name)
	}
	allRestores, err := f.Restores().List(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range allRestores.Items {
		restores = append(restores, allRestores.Items[i].Name)
	}
	return runs, restores
}

// reportRun writes the status of a run as the operator would.
func (f *fixture) reportRun(name string, status slipwayv1alpha1.BackupRunStatus) {
	f.Helper()
	run, err := f.BackupRuns().Get(f.Context(), name, metav1.GetOptions{})
	if err == nil {
		run.Status = status
		_, err = f.BackupRuns().UpdateStatus(f.Context(), run, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// reportRestore writes the status of a Restore as the operator would.
func (f *fixture) reportRestore(name string, status slipwayv1alpha1.RestoreStatus) {
	f.Helper()
	restore, err := f.Restores().Get(f.Context(), name, metav1.GetOptions{})
	if err == nil {
		restore.Status = status
		_, err = f.Restores().UpdateStatus(f.Context(), restore, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
}

func progress(percent int32) *slipwayv1alpha1.TransferProgress {
	return &slipwayv1alpha1.TransferProgress{Percent: percent, Bytes: int64(percent) << 20, TotalBytes: 100 << 20}
}

// startWaiting runs a command that makes an object and waits, and returns the object's name.
func (f *fixture) startWaiting(args ...string) (running *follower, name string) {
	f.Helper()
	running = f.follow(args...)
	if !running.lines.Scan() {
		running.ends(0, "")
		f.Fatal("the command prints nothing")
	}
	object, _ := strings.CutSuffix(running.lines.Text(), " created")
	_, name, _ = strings.Cut(object, "/")
	running.until("waits for the operator")
	return running, name
}

func TestBackupNow(t *testing.T) {
	f := newFixture(t)
	f.expect(1, []string{`Error from server (NotFound): backups.slipway.dev "shop-data" not found in namespace "` + f.Namespace}, "backup", "now", "shop-data")
	f.createBackup("shop-data")
	f.expect(0, []string{"backuprun/shop-data-now-", " created\n"}, "backup", "now", "backup/shop-data")
	runs, _ := f.transfers()
	run, err := f.BackupRuns().Get(t.Context(), runs[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slipwayv1alpha1.BackupRunSpec{Backup: "shop-data"}, run.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var made struct{ Object string }
	if out := f.expect(0, nil, "backup", "now", "shop-data", "-o", "json"); json.Unmarshal([]byte(out), &made) != nil || !strings.HasPrefix(made.Object, "backuprun/shop-data-now-") {
		t.Errorf("got %s", out)
	}
	f.expect(2, []string{"created", "error: backuprun/shop-data-now-", "has not ended after 100ms: waits for the operator"}, "backup", "now", "shop-data", "--wait", "--timeout", "100ms")
	f.expect(0, []string{"shop-data\n:4"}, "__complete", "backup", "now", "--kubeconfig", f.kubeconfig, "sh")
}

func TestBackupDrill(t *testing.T) {
	f := newFixture(t)
	f.expect(1, []string{`Error from server (NotFound): backups.slipway.dev "shop-data" not found in namespace "` + f.Namespace}, "backup", "drill", "shop-data")
	f.createBackup("shop-data")
	f.expect(1, []string{"backup/shop-data has no spec.verify.drill"}, "backup", "drill", "shop-data")
	backup, err := f.Backups().Get(t.Context(), "shop-data", metav1.GetOptions{})
	if err != nil || len(backup.Annotations) != 0 {
		t.Fatalf("%v, annotations %v", err, backup.Annotations)
	}
	backup.Spec.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{}}
	if _, err := f.Backups().Update(t.Context(), backup, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	var asked []string
	for range 2 {
		f.expect(0, []string{"backup/shop-data: a drill was asked for"}, "backup", "drill", "bk/shop-data")
		backup, err := f.Backups().Get(t.Context(), "shop-data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, backup.Annotations[slipwayv1alpha1.AnnotationDrill])
	}
	if asked[0] == "" || asked[0] == asked[1] {
		t.Errorf("the values of the annotation are %q: each has to be another one", asked)
	}
}

func TestBackupNowWaits(t *testing.T) {
	f := newFixture(t)
	f.createBackup("shop-data")
	running, name := f.startWaiting("backup", "now", "shop-data", "--wait")
	status := slipwayv1alpha1.BackupRunStatus{Phase: slipwayv1alpha1.BackupRunning, Reason: "Transferring", Message: "reading", Attempt: 1, Progress: progress(40)}
	f.reportRun(name, status)
	running.until("Running    Transferring: reading")
	running.until(" 40%  40.0 MiB of 100.0 MiB")
	start, end := metav1.NewTime(time.Now().Truncate(time.Second)), metav1.NewTime(time.Now().Add(time.Minute).Truncate(time.Second))
	f.reportRun(name, slipwayv1alpha1.BackupRunStatus{
		Phase: slipwayv1alpha1.BackupCompleted, Reason: "Verified", Files: 3, Bytes: 100 << 20, AddedBytes: 1 << 20, StartTime: &start, CompletionTime: &end,
		Verification: &slipwayv1alpha1.BackupVerification{Mode: slipwayv1alpha1.VerifySample, Time: end},
		Volumes:      []slipwayv1alpha1.BackupVolume{{Claim: "shop-data", SnapshotID: "9d2e1c4b8a7f6053", Verified: true, Files: 3, Bytes: 100 << 20, AddedBytes: 1 << 20}},
	})
	running.until("backuprun/" + name + " completed: 3 files, 100.0 MiB (1.0 MiB added), verified (Sample), in 60s")
	running.ends(0, "")
	f.expect(0, []string{"backup/shop-data: no verified copy", name, "Completed", "9d2e1c4b8a7f6053", "Sample, ", "100.0 MiB", "1.0 MiB"}, "backup", "ls", "shop-data")
	f.expect(0, []string{"snapshotID: 9d2e1c4b8a7f6053", "mode: Sample"}, "backup", "ls", "-o", "yaml")

	running, name = f.startWaiting("backup", "now", "shop-data", "--wait")
	f.reportRun(name, slipwayv1alpha1.BackupRunStatus{Phase: slipwayv1alpha1.BackupFailed, Reason: "Unreachable", Message: "the destination does not answer"})
	running.ends(1, "error: backuprun/"+name+" failed: Unreachable: the destination does not answer")

	running, name = f.startWaiting("backup", "now", "shop-data", "--wait")
	if err := f.BackupRuns().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running.ends(1, "error: backuprun/"+name+" was deleted")
}

func TestBackupListWithoutBackups(t *testing.T) {
	f := newFixture(t)
	f.expect(0, []string{"There is no Backup in namespace"}, "backup", "ls")
	f.expect(0, []string{"[]"}, "backup", "ls", "-o", "json")
	f.expect(1, []string{"not found"}, "backup", "ls", "shop-data")
	f.expect(1, []string{`cannot list resource "backups"`}, "backup", "ls", "--as", "nobody")
}

func TestRestore(t *testing.T) {
	f := newFixture(t)
	f.expect(1, []string{`backups.slipway.dev "shop-data" not found`}, "restore", "shop-data", "--to", "again")
	f.createBackup("shop-data")
	f.expect(0, []string{"restore/shop-data-restore-", " created\n"}, "restore", "backup/shop-data", "--to", "again", "--create", "10Gi",
		"--as-of", "2026-05-01T12:00:00Z", "--volume", "shop-data", "--path", "uploads", "--path", "etc/app.conf", "--as-root")
	_, restores := f.transfers()
	restore, err := f.Restores().Get(t.Context(), restores[0], metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	asOf := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	if !restore.Spec.AsOf.Equal(&asOf) || restore.Spec.Backup.Name != "shop-data" || restore.Spec.Volume.Name != "shop-data" ||
		!slices.Equal(restore.Spec.Paths, []slipwayv1alpha1.BackupPath{"uploads", "etc/app.conf"}) || restore.Spec.Target.Claim != "again" ||
		!restore.Spec.Target.Create.Size.Equal(resource.MustParse("10Gi")) || restore.Spec.Mover.RunAs != slipwayv1alpha1.MoverRoot {
		t.Errorf("got %+v", restore.Spec)
	}
	// What only the API server knows is refused in its words, and nothing is made.
	f.expect(1, []string{"error: make a Restore of backup/shop-data", "must be an ID of a copy"}, "restore", "shop-data", "--to", "again", "--snapshot", "latest")
	f.expect(1, []string{"a path must not"}, "restore", "shop-data", "--to", "again", "--path", "../etc")
	if _, after := f.transfers(); len(after) != 1 {
		t.Errorf("the Restores are %v", after)
	}
}

func TestRestoreWaits(t *testing.T) {
	f := newFixture(t)
	f.createBackup("shop-data")
	running, name := f.startWaiting("restore", "shop-data", "--to", "again", "--wait")
	f.reportRestore(name, slipwayv1alpha1.RestoreStatus{Phase: slipwayv1alpha1.BackupRunning, Reason: "Transferring", Message: "writing", Attempt: 1, Progress: progress(7)})
	running.until("  7%  7.0 MiB of 100.0 MiB")
	source := metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	f.reportRestore(name, slipwayv1alpha1.RestoreStatus{Phase: slipwayv1alpha1.BackupCompleted, Reason: "Restored", Files: 3, Bytes: 100 << 20, SourceTime: &source})
	running.until("restore/" + name + " completed: 3 files, 100.0 MiB in pvc/again, as of 2026-05-01T12:00:00Z")
	running.ends(0, "")

	running, name = f.startWaiting("restore", "shop-data", "--to", "again", "--wait")
	f.reportRestore(name, slipwayv1alpha1.RestoreStatus{Phase: slipwayv1alpha1.BackupFailed, Reason: "TargetNotEmpty", Message: "the volume holds something"})
	running.ends(1, "error: restore/"+name+" failed: TargetNotEmpty: the volume holds something")
}

// The operator says what a run waits for.
func TestRunsOfTheOperator(t *testing.T) {
	f := newFixture(t)
	f.createBackup("shop-data")
	env.StartOperator(t, nil)
	running := f.follow("backup", "now", "shop-data", "--wait")
	running.until(`Pending    SecretNotFound: there is no Secret "slipway-backup" (spec.credentials of the Backup)`)
	f.expect(2, []string{"Pending", "has not ended after 2s"}, "restore", "shop-data", "--to", "again", "--wait", "--timeout", "2s")
}

func TestWhyOfABackup(t *testing.T) {
	f := newFixture(t)
	f.expect(1, []string{`backups.slipway.dev "shop-data" not found`}, "why", "backup/shop-data")
	f.expect(1, []string{`backupruns.slipway.dev "none" not found`}, "why", "bkr/none")
	f.expect(1, []string{`restores.slipway.dev "none" not found`}, "why", "rs/none")
	f.createBackup("shop-data")
	f.expect(1, []string{"backup/shop-data is not ready: NotObserved"}, "why", "backup/shop-data")
	f.expect(1, []string{"--foreign is about WebApps and APIGateways"}, "why", "backup/shop-data", "--foreign")
	f.expect(0, []string{" created"}, "backup", "now", "shop-data")
	runs, _ := f.transfers()
	f.reportRun(runs[0], slipwayv1alpha1.BackupRunStatus{ObservedGeneration: 1, Phase: slipwayv1alpha1.BackupFailed, Reason: "Unreachable", Message: "no answer", Conditions: []metav1.Condition{
		clitest.Condition(slipwayv1alpha1.ConditionReady, false, "Unreachable", "no answer"), clitest.Condition(slipwayv1alpha1.ConditionStalled, true, "Unreachable", "no answer"),
	}})
	f.expect(1, []string{"└─ backuprun/" + runs[0] + ": Unreachable: no answer"}, "why", "backup/shop-data")
	f.expect(1, []string{"backuprun/" + runs[0] + " is not ready: Unreachable: no answer"}, "why", "backuprun/"+runs[0])
}
