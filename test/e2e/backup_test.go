//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The four fields that the README shows, with a slot that is soon.
func testTheVolumeOfAnApplicationIsBackedUpOnScheduleAndRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartS3()
	f.Create(f.app(storage("1Gi", slipwayv1alpha1.DeletionPolicyDelete)))
	f.ready()
	f.tree("make", dataName)
	f.backup(dataName, func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = "* * * * *" })

	backup := f.waitBackup(dataName,
		backupIs(slipwayv1alpha1.ConditionVerified, metav1.ConditionTrue, slipwayv1alpha1.ReasonVerified),
		backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
	)
	update(f, backup, func(b *slipwayv1alpha1.Backup) { b.Spec.Suspend = true })
	if backup.Status.LastBackupTime == nil || backup.Status.LastRun == nil || backup.Status.RepositoryID == "" {
		t.Fatalf("the status of the Backup is %+v", backup.Status)
	}
	run := mustGet(f, backup.Status.LastRun.Name, &slipwayv1alpha1.BackupRun{})
	if run.Spec.Slot == nil || run.Status.Files == 0 || run.Status.AddedBytes == 0 || run.Status.Unreadable != 0 {
		t.Errorf("the run is %+v, %+v", run.Spec, run.Status)
	}
	if !meta.IsStatusConditionTrue(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource) {
		t.Error("nothing says that the application could write meanwhile")
	}
	f.restore("again")
	restored := f.Restored("again", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if restored.Status.OwnersNotKept != 0 || restored.Status.AttributesNotKept != 0 || restored.Status.Files != run.Status.Files {
		t.Errorf("the restore is %+v, the run was %+v", restored.Status, run.Status)
	}
	if diff := cmp.Diff(f.listed(dataName), f.listed("again")); diff != "" {
		t.Errorf("the volume differs from what was backed up (-want +got):\n%s", diff)
	}
	// What is not to be kept is removed without anybody's doing.
	f.waitBackup(dataName, backupIs(slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonRetentionApplied))
	if shown := f.Kubectl("get", "backup", dataName); !strings.Contains(shown, "Completed") || !strings.Contains(shown, "LAST BACKUP") {
		t.Errorf("kubectl get shows:\n%s", shown)
	}
}

func testARestoreBringsBackWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	f, _ := withData(t)
	before := metav1.NewTime(time.Now().Add(-time.Minute))
	f.backup(dataName)
	first := f.backedUp(dataName, "first")
	list := f.listed(dataName)

	f.restore("one-path", func(s *slipwayv1alpha1.RestoreSpec) { s.Paths = []slipwayv1alpha1.BackupPath{"names", "a/b"} })
	f.restore("too-early", func(s *slipwayv1alpha1.RestoreSpec) { s.AsOf = &before })
	f.restore("of-run", func(s *slipwayv1alpha1.RestoreSpec) {
		s.Backup, s.Run = nil, &slipwayv1alpha1.LocalReference{Name: "first"}
	})
	f.restore("not-empty", func(s *slipwayv1alpha1.RestoreSpec) { s.Target = slipwayv1alpha1.RestoreTarget{Claim: dataName} })
	f.restore("no-path", func(s *slipwayv1alpha1.RestoreSpec) { s.Paths = []slipwayv1alpha1.BackupPath{"nowhere"} })

	f.Restored("one-path", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if diff := cmp.Diff(below(list, `"names`, `"a/b`), below(f.listed("one-path"), `"`)); diff != "" {
		t.Errorf("two paths (-want +got):\n%s", diff)
	}
	of := f.Restored("of-run", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if of.Status.SnapshotID != first.Status.Volumes[0].SnapshotID {
		t.Errorf("the copy %s was restored, want that of the run, %s", of.Status.SnapshotID, first.Status.Volumes[0].SnapshotID)
	}
	if diff := cmp.Diff(list, f.listed("of-run")); diff != "" {
		t.Errorf("the copy of a run (-want +got):\n%s", diff)
	}
	early := f.Restored("too-early", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonRepositoryNotFound)
	if !strings.Contains(early.Status.Message, "no verified snapshot of") || early.Status.SnapshotID != "" {
		t.Errorf("a restore of a time before all copies: %+v", early.Status)
	}
	f.Restored("not-empty", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonTargetNotEmpty)
	f.Restored("no-path", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonPathNotFound)
	if diff := cmp.Diff(list, f.listed(dataName)); diff != "" {
		t.Errorf("a restore that was refused changed the volume (-want +got):\n%s", diff)
	}
	f.restore("over", func(s *slipwayv1alpha1.RestoreSpec) {
		s.Target, s.Overwrite = slipwayv1alpha1.RestoreTarget{Claim: "one-path"}, true
	})
	f.Restored("over", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if diff := cmp.Diff(list, f.listed("one-path")); diff != "" {
		t.Errorf("everything over a part of it (-want +got):\n%s", diff)
	}
}

// below are the lines of a list that begin with one of the prefixes, but for folders: only some of what they held was restored.
func below(list string, prefixes ...string) []string {
	var lines []string
	for line := range strings.Lines(list) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) && !strings.Contains(line, `" d`) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// Only the bucket and a copy of the password are left, as after the loss of a cluster.
func testARepositoryIsRestoredAfterEverythingElseIsGone(t *testing.T) {
	t.Parallel()
	bucket := newFixture(t)
	endpoint := bucket.StartS3()
	lost, err := lostNamespace(newFixture(t), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	repository := func(s *slipwayv1alpha1.RestoreSpec) {
		s.Backup = nil
		s.Repository = &slipwayv1alpha1.RestoreRepository{
			Destination: "s3://backups/" + lost.namespace + "/" + dataName, Encryption: slipwayv1alpha1.LocalReference{Name: "saved"},
		}
	}
	f.restore("again", repository)
	f.Restored("again", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSecretNotFound)
	f.credentials(endpoint)
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "saved"}, StringData: map[string]string{"password": lost.password}})
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "guessed"}, StringData: map[string]string{"password": "guessed"}})
	f.restore("guess", repository, func(s *slipwayv1alpha1.RestoreSpec) { s.Repository.Encryption.Name = "guessed" })
	f.Restored("again", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	if diff := cmp.Diff(lost.list, f.listed("again")); diff != "" {
		t.Errorf("the volume differs from the lost one (-want +got):\n%s", diff)
	}
	f.Restored("guess", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonWrongPassword)
}

// lost is what somebody knows of a namespace that is gone.
type lost struct{ namespace, password, list string }

// lostNamespace backs a volume up, and deletes the namespace.
func lostNamespace(f *fixture, endpoint string) (lost, error) {
	f.credentials(endpoint)
	f.Claim(dataName, "", dataSize)
	f.tree("make", dataName)
	f.backup(dataName)
	f.backedUp(dataName, "now")
	of := lost{namespace: f.Namespace, list: f.listed(dataName)}
	of.password = string(mustGet(f, dataName+"-encryption", &corev1.Secret{}).Data["password"])
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	f.Delete(namespace)
	f.Eventually(func() error { return gone(f.Context(), namespace) })
	return of, nil
}

func gone(ctx context.Context, object client.Object) error {
	err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object)
	if err == nil {
		return errStillThere
	}
	return client.IgnoreNotFound(err)
}
