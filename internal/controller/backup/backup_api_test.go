//go:build apitest

package backup_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// A Backup of four fields makes its key, one run, pins the repository, and removes what is old.
func TestABackupFromItsFirstRunToRetention(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "30d" })
	run := f.job(copying...)
	key := &corev1.Secret{}
	if err := f.get("shop-encryption", key); err != nil || len(key.Data["password"]) != 64 || len(key.OwnerReferences) != 0 {
		t.Fatalf("the key: %v, %d characters, owners %v", err, len(key.Data["password"]), key.OwnerReferences)
	}
	if err := f.cluster.Move(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	keep := f.job(keeping...)
	if err := f.get("shop-encryption", key); err != nil || string(key.Data["repositoryID.shop"]) != workload.RepositoryID {
		t.Errorf("the key holds the ID %q, %v", key.Data["repositoryID.shop"], err)
	}
	if err := f.cluster.Move(t.Context(), keep, nil); err != nil {
		t.Fatal(err)
	}
	backup := f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
			has(b, slipwayv1alpha1.ConditionVerified, metav1.ConditionTrue, slipwayv1alpha1.ReasonVerified),
			has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonRetentionApplied),
		)
	})
	status := backup.Status
	if status.Phase != slipwayv1alpha1.BackupCompleted || status.LastBackupTime == nil || status.Snapshots != 7 || status.Size == nil ||
		status.RepositoryID != workload.RepositoryID || status.ConsecutiveFailures != 0 {
		t.Errorf("status is %+v", status)
	}
	if runs := f.runs(); len(runs) != 1 {
		t.Errorf("there are %d runs, want one: there is no schedule", len(runs))
	}
}

// Lost data keep unused space from being freed until the copies that need them have expired. So they expire first then.
func TestCopiesExpireThoughDataAreLost(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "30d" })
	f.move(f.job(copying...), nil)
	f.move(f.job(keeping...), refused("Corrupt"))
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if kept := b.Status.Retention; kept == nil || !strings.Contains(kept.Message, "as long as a copy needs what is lost") {
			return fmt.Errorf("retention is %+v", kept)
		}
		return has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionFalse, slipwayv1alpha1.ReasonRetentionFailed)
	})
	// Both runs may be made in one second, and then the names decide which is the newer one.
	f.create(&slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-by-hand", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
	})
	f.move(f.job(copying...), nil)
	f.move(f.job(mover.StepExpire, mover.StepMaintain), nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonRetentionApplied)
	})
}

func TestAFailedRunIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup()
	err := f.cluster.Move(t.Context(), f.job(copying...), func(_ mover.Step, r *mover.Result) *mover.Result {
		r.OK, r.Kind, r.Message = false, "SourceEmpty", "the source holds no file"
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	backup := f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRunFailed),
			has(b, slipwayv1alpha1.ConditionVerified, metav1.ConditionFalse, slipwayv1alpha1.ReasonRunFailed),
		)
	})
	if s := backup.Status; s.LastBackupTime != nil || s.ConsecutiveFailures != 1 || s.Phase != slipwayv1alpha1.BackupFailed || s.Summary.Reason != slipwayv1alpha1.ReasonRunFailed {
		t.Errorf("status is %+v", s)
	}
}

func TestALostKeyIsNeverReplaced(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup()
	if err := f.cluster.Move(t.Context(), f.job(copying...), nil); err != nil {
		t.Fatal(err)
	}
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if b.Status.RepositoryID == "" {
			return errors.New("the repository is not known yet")
		}
		return nil
	})
	if err := env.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-encryption", Namespace: f.namespace}}); err != nil {
		t.Fatal(err)
	}
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonKeyMissing)
	})
	if err := f.get("shop-encryption", &corev1.Secret{}); err == nil {
		t.Error("another key was made, with which nobody can read the copies")
	}
}

func TestWhatNoScheduleCanMeanIsRefused(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]func(*slipwayv1alpha1.Backup){
		"six fields":                func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 0 2 * * *" },
		"a day that never comes":    func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 0 31 2 *" },
		"a zone in the schedule":    func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "TZ=UTC 0 2 * * *" },
		"a zone that there is not":  func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule, b.Spec.TimeZone = "0 2 * * *", "Moon/Crater" },
		"a unit twice in retention": func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule, b.Spec.RetentionPolicy = "0 2 * * *", "1d1d" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.backup(change)
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				return has(b, slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonInvalid)
			})
			if runs := f.runs(); len(runs) != 0 {
				t.Errorf("there are runs: %+v", runs)
			}
		})
	}
}

func TestWhatTheSchemaRefuses(t *testing.T) {
	f := newFixture(t)
	include := func(path slipwayv1alpha1.BackupPath) func(*slipwayv1alpha1.Backup) {
		return func(b *slipwayv1alpha1.Backup) { b.Spec.Include = []slipwayv1alpha1.BackupPath{path} }
	}
	tests := map[string]struct {
		change func(*slipwayv1alpha1.Backup)
		want   string
	}{
		"a path in folders":           {include("a/b.c/..d"), ""},
		"a path from the root":        {include("/a"), "a path must not begin"},
		"a path with an empty folder": {include("a//b"), "a path must not begin"},
		"a path out of the volume":    {include("a/../../b"), "a path must not begin"},
		"a path of nothing":           {include("."), "a path must not begin"},
		"a source of another kind":    {func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "job/x" }, "spec.source must be"},
		"a destination elsewhere":     {func(b *slipwayv1alpha1.Backup) { b.Spec.Destination = "file:///etc" }, "spec.destination must be"},
		"a destination with a climb":  {func(b *slipwayv1alpha1.Backup) { b.Spec.Destination = "pvc://copies/../x" }, "spec.destination must be"},
		"minutes or months":           {func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "6m" }, "m could mean minutes or months"},
		"retention in two ways": {func(b *slipwayv1alpha1.Backup) {
			b.Spec.RetentionPolicy, b.Spec.Retention = "30d", &slipwayv1alpha1.BackupRetention{Last: 3}
		}, "at most one of retention and retentionPolicy"},
		"a zone without a schedule": {func(b *slipwayv1alpha1.Backup) { b.Spec.TimeZone = "Europe/Berlin" }, "spec.timeZone needs spec.schedule"},
		"a deadline of seconds":     {func(b *slipwayv1alpha1.Backup) { b.Spec.Deadline = "10s" }, "spec.deadline must be at least 1m"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			backup := &slipwayv1alpha1.Backup{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
				Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket/prefix"},
			}
			tc.change(backup)
			err := env.Client.Create(t.Context(), backup, client.DryRunAll)
			if (tc.want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
