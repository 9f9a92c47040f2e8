//go:build apitest

package backuprun_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// controllerOf is the controller of a run, as it is now.
func (f *fixture) controllerOf(name string) *metav1.OwnerReference {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{}
	if err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, run); err != nil {
		f.Fatal(err)
	}
	return metav1.GetControllerOf(run)
}

// again deletes the Backup, and makes one of the same name.
func (f *fixture) again() {
	f.Helper()
	if err := env.Client.Delete(f.Context(), f.backup); err != nil {
		f.Fatal(err)
	}
	another := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: f.backup.Name, Namespace: f.namespace}, Spec: f.backup.Spec}
	environment.Eventually(f, func() error {
		another.ResourceVersion, another.UID = "", ""
		return env.Client.Create(f.Context(), another)
	})
	f.backup = another
}

func TestARunByHandIsOwnedByItsBackupBeforeItBegins(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.run("shop-now")
	f.job("shop-now-0-1")
	controller := f.controllerOf("shop-now")
	if controller == nil || controller.UID != f.backup.UID || controller.Kind != "Backup" || controller.Name != "shop" ||
		controller.BlockOwnerDeletion == nil || !*controller.BlockOwnerDeletion {
		t.Errorf("it is controlled by %+v", controller)
	}
}

// A run that waited for its Backup is of the one that comes.
func TestARunThatWasThereBeforeItsBackupIsOfIt(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	later := f.run("later")
	if err := env.Client.Delete(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	run := &slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "mart-now", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "mart"},
	}
	f.create(run)
	f.wait("mart-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonBackupNotFound)
	mart := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "mart", Namespace: f.namespace}, Spec: f.backup.Spec}
	f.create(mart)
	f.job("mart-now-0-1")
	if controller := f.controllerOf("mart-now"); controller == nil || controller.UID != mart.UID {
		t.Errorf("it is controlled by %+v", controller)
	}
}

// The garbage collector is played by nobody here: it may take its time. Until then the runs of a Backup that was deleted are
// there beside the Backup that has its name now.
func TestABackupThatIsMadeAgainKnowsNothingOfTheRunsBefore(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.run("shop-done")
	if err := f.cluster.Move(t.Context(), f.job("shop-done-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-done", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	f.again()
	backup := &slipwayv1alpha1.Backup{}
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f.backup), backup); err != nil {
			return err
		}
		if backup.Status.ObservedGeneration == 0 {
			return errors.New("it has no status yet")
		}
		return nil
	})
	if s := backup.Status; s.LastBackupTime != nil || s.RepositoryID != "" || s.LastRun != nil || s.Phase != "" {
		t.Errorf("it is born with %+v", s)
	}
	// A run of the Backup before does not make the new one's wait, and does not say which repository to use.
	f.run("shop-now")
	job := f.job("shop-now-0-1")
	if config := job.Spec.Template.Annotations["slipway.dev/mover-config"]; !strings.Contains(config, `"create":true`) {
		t.Errorf("the first run of the new Backup is told %s", config)
	}
	if controller := f.controllerOf("shop-now"); controller == nil || controller.UID != f.backup.UID {
		t.Errorf("it is controlled by %+v, want %s", controller, f.backup.UID)
	}
}

// What controls a run decides whose it is.
func TestARunOfAnotherOwnerNeverStarts(t *testing.T) {
	env.StartOperator(t, nil)
	yes := true
	tests := map[string]struct {
		owner  func(f *fixture) metav1.OwnerReference
		reason string
	}{
		"of a Backup of the same name that was deleted": {func(f *fixture) metav1.OwnerReference {
			before := f.backup.UID
			f.again()
			return metav1.OwnerReference{APIVersion: "slipway.dev/v1alpha1", Kind: "Backup", Name: "shop", UID: before, Controller: &yes}
		}, slipwayv1alpha1.ReasonBackupReplaced},
		"of something else": {func(f *fixture) metav1.OwnerReference {
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: f.namespace}}
			f.create(config)
			return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: config.UID, Controller: &yes}
		}, slipwayv1alpha1.ReasonOtherController},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create(&slipwayv1alpha1.BackupRun{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-now", Namespace: f.namespace, OwnerReferences: []metav1.OwnerReference{tc.owner(f)}},
				Spec:       slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
			})
			run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, tc.reason)
			if len(run.Status.Volumes) != 0 || run.Status.Message == "" {
				t.Errorf("status is %+v", run.Status)
			}
			if controller := f.controllerOf("shop-now"); controller.UID == f.backup.UID {
				t.Error("it was taken from its owner")
			}
		})
	}
}

// An owner that does not control the run is left beside the Backup.
func TestAnOwnerBesideTheControllerStays(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: f.namespace}}
	f.create(config)
	f.create(&slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-now", Namespace: f.namespace, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "mine", UID: config.UID},
			{APIVersion: "slipway.dev/v1alpha1", Kind: "Backup", Name: "shop", UID: f.backup.UID},
		}},
		Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
	})
	f.job("shop-now-0-1")
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if controller := metav1.GetControllerOf(run); len(run.OwnerReferences) != 2 || controller == nil || controller.UID != f.backup.UID {
		t.Errorf("its owners are %+v", run.OwnerReferences)
	}
}

func TestNoRunStartsForABackupThatIsBeingDeleted(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Finalizers = []string{"example.com/held"} })
	if err := env.Client.Delete(t.Context(), f.backup); err != nil {
		t.Fatal(err)
	}
	f.run("shop-now")
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonTerminating)
	if controller := f.controllerOf("shop-now"); controller != nil {
		t.Errorf("it is controlled by %+v, and would go with a Backup that it was not made for", controller)
	}
	letGo := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := env.Client.Patch(t.Context(), f.backup, letGo); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonBackupNotFound)
	f.create(&slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}, Spec: f.backup.Spec})
	f.job("shop-now-0-1")
}

// An older operator gave runs by hand no owner: those that it has left are adopted, if they are of this Backup.
func TestARunThatAnOlderOperatorLeftIsAdopted(t *testing.T) {
	f := newFixture(t)
	f.create(f.secret("shop-encryption", "password"))
	now := metav1.Now()
	begun := map[string]metav1.Time{"before": metav1.NewTime(f.backup.CreationTimestamp.AddDate(0, 0, -1)), "mine": now}
	before := f.run("before")
	environment.Eventually(t, func() error { // the times that an API server writes are of a whole second
		if err := env.Client.Delete(t.Context(), f.backup); err != nil {
			return err
		}
		f.backup = &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}, Spec: f.backup.Spec}
		f.create(f.backup)
		if !before.CreationTimestamp.Before(&f.backup.CreationTimestamp) {
			return errors.New("the Backup was made in the same second as the run of the one before")
		}
		return nil
	})
	runs := map[string]*slipwayv1alpha1.BackupRun{"before": before, "mine": f.run("mine")}
	for name, run := range runs {
		at := begun[name]
		run.Status = slipwayv1alpha1.BackupRunStatus{
			Phase: slipwayv1alpha1.BackupCompleted, Reason: slipwayv1alpha1.ReasonVerified, StartTime: &at, CompletionTime: &at, RepositoryID: "of-" + name,
			Volumes: []slipwayv1alpha1.BackupVolume{{Claim: "shop-data", SourceTime: &at, Verified: true, SnapshotID: name}},
		}
		if err := env.Client.Status().Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	env.StartOperator(t, nil)
	environment.Eventually(t, func() error {
		if controller := f.controllerOf("mine"); controller == nil || controller.UID != f.backup.UID {
			return fmt.Errorf("the run of the Backup is controlled by %+v", controller)
		}
		backup := &slipwayv1alpha1.Backup{}
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(f.backup), backup); err != nil {
			return err
		}
		if backup.Status.RepositoryID != "of-mine" {
			return fmt.Errorf("the Backup says %+v", backup.Status)
		}
		return nil
	})
	if controller := f.controllerOf("before"); controller != nil {
		t.Errorf("a run that began before the Backup was made is controlled by %+v", controller)
	}
}
