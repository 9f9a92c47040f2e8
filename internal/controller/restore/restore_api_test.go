//go:build apitest

package restore_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestTheNewestCopyComesToANewVolume(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.get("restored", claim); err != nil || len(claim.OwnerReferences) != 0 {
		t.Fatalf("the volume: %v, owners %v", err, claim.OwnerReferences)
	}
	err := f.cluster.Move(t.Context(), job, func(_ mover.Step, r *mover.Result) *mover.Result {
		r.Restore.OwnersNotKept = 2
		return r
	})
	if err != nil {
		t.Fatal(err)
	}
	restore := f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	s := restore.Status
	if s.SnapshotID == "" || s.Files != 3 || s.SourceTime == nil || !meta.IsStatusConditionTrue(s.Conditions, slipwayv1alpha1.ConditionReady) ||
		!meta.IsStatusConditionTrue(s.Conditions, slipwayv1alpha1.ConditionOwnersNotKept) {
		t.Errorf("status is %+v", s)
	}
}

func TestARestoreNeverSaysMoreThanItsJob(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]struct {
		change        func(mover.Step, *mover.Result) *mover.Result
		phase, reason string
	}{
		"there is no copy": {func(_ mover.Step, r *mover.Result) *mover.Result {
			r.OK, r.Kind, r.Restore = false, "NotFound", nil
			return r
		}, "Failed", slipwayv1alpha1.ReasonRepositoryNotFound},
		"the target holds something": {func(_ mover.Step, r *mover.Result) *mover.Result {
			r.OK, r.Kind, r.Restore = false, "TargetNotEmpty", nil
			return r
		}, "Failed", slipwayv1alpha1.ReasonTargetNotEmpty},
		"killed":              {func(mover.Step, *mover.Result) *mover.Result { return nil }, "Pending", slipwayv1alpha1.ReasonRetrying},
		"it restored nothing": {func(_ mover.Step, r *mover.Result) *mover.Result { r.Restore = nil; return r }, "Pending", slipwayv1alpha1.ReasonRetrying},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.restore()
			if err := f.cluster.Move(t.Context(), f.job(1), tc.change); err != nil {
				t.Fatal(err)
			}
			f.wait(slipwayv1alpha1.BackupPhase(tc.phase), tc.reason)
		})
	}
}

func TestWhatARestoreWaitsForAndRefuses(t *testing.T) {
	env.StartOperator(t, nil)
	existing := func(s *slipwayv1alpha1.RestoreSpec) { s.Target.Create = nil }
	tests := map[string]struct {
		change        []func(*slipwayv1alpha1.RestoreSpec)
		phase, reason string
	}{
		"a target that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){existing}, "Pending", slipwayv1alpha1.ReasonTargetNotFound},
		"a Backup that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) { s.Backup.Name = "other" }}, "Pending", slipwayv1alpha1.ReasonBackupNotFound},
		"a run that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Backup, s.Run = nil, &slipwayv1alpha1.LocalReference{Name: "other"}
		}}, "Pending", slipwayv1alpha1.ReasonRunNotFound},
		"a Secret that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Backup, s.Repository = nil, &slipwayv1alpha1.RestoreRepository{Destination: "s3://bucket/team/shop", Encryption: slipwayv1alpha1.LocalReference{Name: "lost"}}
		}}, "Pending", slipwayv1alpha1.ReasonSecretNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.restore(tc.change...)
			f.wait(slipwayv1alpha1.BackupPhase(tc.phase), tc.reason)
		})
	}
}

// A new volume is one that is not there. One of that name may hold somebody's data, whatever its labels and annotations say.
func TestAVolumeOfTheNameOfTheNewOneIsRefused(t *testing.T) {
	env.StartOperator(t, nil)
	labels := map[string]string{
		slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, slipwayv1alpha1.LabelName: "again", slipwayv1alpha1.LabelRestore: "again",
	}
	tests := map[string]struct{ labels, annotations map[string]string }{
		"somebody's":                    {nil, nil},
		"with the name in its label":    {labels, nil},
		"without a UID":                 {labels, map[string]string{slipwayv1alpha1.AnnotationRestoreUID: ""}},
		"with the name as the UID":      {labels, map[string]string{slipwayv1alpha1.AnnotationRestoreUID: "again"}},
		"with the UID of another one's": {labels, map[string]string{slipwayv1alpha1.AnnotationRestoreUID: "5d1c6b53-5c0a-4a3b-9d3f-0a1b2c3d4e5f"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.claim("restored", func(claim *corev1.PersistentVolumeClaim) { claim.Labels, claim.Annotations = tc.labels, tc.annotations })
			f.restore()
			restore := f.wait(slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonNameConflict)
			if want := "delete it"; !strings.Contains(restore.Status.Message, want) {
				t.Errorf("the message is %q, want %q in it", restore.Status.Message, want)
			}
			f.noJob("again-restore-1")
		})
	}
}

// A volume stays when its Restore goes. Another Restore of that name is another one.
func TestTheVolumeOfAnEarlierRestoreOfTheNameIsRefused(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	first := f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	f.delete(first)
	f.gone(job) // the operator deletes it: its result stands in the status
	f.restore()
	if second := f.wait(slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonNameConflict); second.UID == first.UID {
		t.Error("it is the first Restore")
	}
	f.noJob("again-restore-1")
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.get("restored", claim); err != nil || claim.Annotations[slipwayv1alpha1.AnnotationRestoreUID] != string(first.UID) || !claim.DeletionTimestamp.IsZero() {
		t.Errorf("the volume: %v, %+v", err, claim.ObjectMeta)
	}
}

// Only the UID tells whose a volume is, so a label that somebody takes away changes nothing.
func TestAVolumeWithoutItsLabelsIsStillTheRestores(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "restored", Namespace: f.namespace}}
	if err := env.Client.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))); err != nil {
		t.Fatal(err)
	}
	f.delete(job)
	f.gone(job)
	f.job(1)
}

func TestARunThatFailedHasNoCopy(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.claim("shop-data")
	f.create(&slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: "shop-now", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"}})
	run := &slipwayv1alpha1.BackupRun{}
	environment.Eventually(t, func() error { return f.get("shop-now", run) })
	run.Status.Phase, run.Status.Reason = slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonSourceEmpty
	run.Status.CompletionTime = &metav1.Time{Time: time.Now()}
	environment.Eventually(t, func() error {
		if err := f.get("shop-now", run); err != nil {
			return err
		}
		run.Status.Phase, run.Status.Reason = slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonSourceEmpty
		return env.Client.Status().Update(t.Context(), run)
	})
	f.restore(func(s *slipwayv1alpha1.RestoreSpec) {
		s.Backup, s.Run = nil, &slipwayv1alpha1.LocalReference{Name: "shop-now"}
	})
	f.wait(slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonRunNotFound)
}
