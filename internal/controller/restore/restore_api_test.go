//go:build apitest

package restore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
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
	class := "class-of-restores"
	tests := map[string]struct {
		change        []func(*slipwayv1alpha1.RestoreSpec)
		phase, reason string
	}{
		"a target that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){existing}, "Pending", slipwayv1alpha1.ReasonTargetNotFound},
		"a StorageClass that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Target.Create.StorageClassName = &class
		}}, "Pending", slipwayv1alpha1.ReasonStorageClassNotFound},
		"a PriorityClass that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Mover = &slipwayv1alpha1.BackupMover{PriorityClassName: class}
		}}, "Pending", slipwayv1alpha1.ReasonPriorityClassNotFound},
		"a Backup that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) { s.Backup.Name = "other" }}, "Pending", slipwayv1alpha1.ReasonBackupNotFound},
		"a run that is not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Backup, s.Run = nil, &slipwayv1alpha1.LocalReference{Name: "other"}
		}}, "Pending", slipwayv1alpha1.ReasonRunNotFound},
		"credentials that are not there": {[]func(*slipwayv1alpha1.RestoreSpec){func(s *slipwayv1alpha1.RestoreSpec) {
			s.Backup, s.Repository = nil, &slipwayv1alpha1.RestoreRepository{
				Destination: "s3://bucket/team/shop", Credentials: &slipwayv1alpha1.LocalReference{Name: "lost"},
				Encryption: slipwayv1alpha1.LocalReference{Name: "shop-encryption"},
			}
		}}, "Pending", slipwayv1alpha1.ReasonSecretNotFound},
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

// It waits for what is not there, and goes on when that comes: nothing is asked for again and again.
func TestARestoreGoesOnWhenWhatItNamesComes(t *testing.T) {
	env.StartOperator(t, nil)
	t.Run("the target", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.restore(func(s *slipwayv1alpha1.RestoreSpec) { s.Target.Create = nil })
		f.wait(slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonTargetNotFound)
		f.claim("restored")
		f.job(1)
	})
	classes := map[string]struct {
		change func(*slipwayv1alpha1.RestoreSpec, *string)
		reason string
		class  func(metav1.ObjectMeta) client.Object
	}{
		"the StorageClass": {
			func(s *slipwayv1alpha1.RestoreSpec, class *string) { s.Target.Create.StorageClassName = class },
			slipwayv1alpha1.ReasonStorageClassNotFound,
			func(named metav1.ObjectMeta) client.Object {
				return &storagev1.StorageClass{ObjectMeta: named, Provisioner: "example.com/none"}
			},
		},
		"the PriorityClass": {
			func(s *slipwayv1alpha1.RestoreSpec, class *string) {
				s.Mover = &slipwayv1alpha1.BackupMover{PriorityClassName: *class}
			},
			slipwayv1alpha1.ReasonPriorityClassNotFound,
			func(named metav1.ObjectMeta) client.Object { return &schedulingv1.PriorityClass{ObjectMeta: named} },
		},
	}
	for name, tc := range classes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			class := tc.class(metav1.ObjectMeta{Name: "of-" + f.namespace})
			called := class.GetName()
			f.restore(func(s *slipwayv1alpha1.RestoreSpec) { tc.change(s, &called) })
			f.wait(slipwayv1alpha1.BackupPending, tc.reason)
			f.create(class)
			t.Cleanup(func() {
				if err := env.Client.Delete(context.WithoutCancel(t.Context()), class); err != nil {
					t.Error(err)
				}
			})
			f.job(1)
		})
	}
}

// Pods start without a Secret to pull their image with, so they say nothing of it.
func TestAPullSecretThatDoesNotExistIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore(func(s *slipwayv1alpha1.RestoreSpec) {
		s.Mover = &slipwayv1alpha1.BackupMover{ImagePullSecrets: []slipwayv1alpha1.LocalReference{{Name: "pull"}}}
	})
	const missing = slipwayv1alpha1.ConditionPullSecretMissing
	restore := &slipwayv1alpha1.Restore{}
	reported := func(want string) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get("again", restore); err != nil {
				return err
			}
			said := ""
			if c := meta.FindStatusCondition(restore.Status.Conditions, missing); c != nil {
				said = c.Message
			}
			if said != want {
				return fmt.Errorf("it says %q, want %q", said, want)
			}
			return nil
		})
	}
	reported(`Secret "pull" does not exist (spec.mover.imagePullSecrets[0]): images are pulled without it`)
	f.job(1)
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull", Namespace: f.namespace}})
	reported("")
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

func TestAVolumeThatARunHasNotCopiedIsRefused(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.claim("shop-data")
	f.create(&slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: "shop-now", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"}})
	run := &slipwayv1alpha1.BackupRun{}
	environment.Eventually(t, func() error {
		if err := f.get("shop-now", run); err != nil {
			return err
		}
		run.Status.Phase, run.Status.Reason = slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified
		run.Status.CompletionTime = &metav1.Time{Time: time.Now()}
		run.Status.Volumes = []slipwayv1alpha1.BackupVolume{{Claim: "shop-data", SnapshotID: strings.Repeat("0", 32), Verified: true}}
		return env.Client.Status().Update(t.Context(), run)
	})
	f.restore(func(s *slipwayv1alpha1.RestoreSpec) {
		s.Backup, s.Run, s.Volume = nil, &slipwayv1alpha1.LocalReference{Name: "shop-now"}, &slipwayv1alpha1.LocalReference{Name: "other"}
	})
	restore := f.wait(slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonInvalid)
	if want := `spec.volume: BackupRun "shop-now" has no volume "other", only ["shop-data"]`; restore.Status.Message != want {
		t.Errorf("the message is %q, want %q", restore.Status.Message, want)
	}
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
