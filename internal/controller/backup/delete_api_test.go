//go:build apitest

package backup_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

func withDeletion(b *slipwayv1alpha1.Backup) { b.Spec.DeletionPolicy = slipwayv1alpha1.DeletionDelete }

func (f *fixture) delete(object client.Object) {
	f.Helper()
	// The default for a Job is to orphan its pods, for which it waits.
	if err := client.IgnoreNotFound(env.Client.Delete(f.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
		f.Fatal(err)
	}
}

// backupGone waits until there is no Backup any more.
func (f *fixture) backupGone() {
	f.Helper()
	environment.Eventually(f, func() error {
		backup := &slipwayv1alpha1.Backup{}
		err := f.get("shop", backup)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is still there: %s", backup.Status.Message))
	})
}

// jobNamed waits for a Job that is not being deleted.
func (f *fixture) jobNamed(name string) *batchv1.Job {
	f.Helper()
	job := &batchv1.Job{}
	environment.Eventually(f, func() error {
		backup := &slipwayv1alpha1.Backup{}
		return errors.Join(f.get(name, job), f.get("shop", backup), func() error {
			if !job.DeletionTimestamp.IsZero() {
				return errors.New(backup.Status.Message)
			}
			return nil
		}())
	})
	return job
}

func refused(kind string) func(mover.Step, *mover.Result) *mover.Result {
	return func(_ mover.Step, r *mover.Result) *mover.Result {
		return &mover.Result{Command: r.Command, Kind: kind, Message: "words"}
	}
}

// The key of the repository goes with it, and another one may be made with the password.
func TestARepositoryGoesWithItsBackupAndItsID(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion)
	f.move(f.job(copying...), nil)
	f.move(f.job(mover.StepMaintain), nil)
	key := &corev1.Secret{}
	if err := f.get("shop-encryption", key); err != nil || string(key.Data["repositoryID.shop"]) != workload.RepositoryID {
		t.Fatalf("the key holds %q, %v", key.Data, err)
	}
	f.delete(backup)
	f.move(f.jobNamed("shop-delete"), nil)
	f.backupGone()
	if err := f.get("shop-encryption", key); err != nil || len(key.Data["password"]) == 0 || len(key.Data) != 1 {
		t.Errorf("the key holds %v, %v", key.Data, err)
	}
}

func TestADeletionThatFailsIsTriedAgain(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion)
	f.move(f.job(copying...), nil)
	f.move(f.job(mover.StepMaintain), nil)
	f.delete(backup)
	first := f.jobNamed("shop-delete")
	f.move(first, refused("Unreachable"))
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if !strings.Contains(b.Status.Message, "tried again") {
			return errors.New(b.Status.Message)
		}
		return nil
	})
	// It failed long ago: nobody waits here.
	first = f.jobNamed("shop-delete")
	for i := range first.Status.Conditions {
		first.Status.Conditions[i].LastTransitionTime = metav1.NewTime(first.CreationTimestamp.Add(-time.Minute))
	}
	if err := env.Client.Status().Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	f.move(f.jobNamed("shop-delete-2"), refused("NotFound"))
	f.backupGone()
	environment.Eventually(t, func() error { return f.hasEvent(slipwayv1alpha1.ReasonRepositoryNotFound, "no repository") })
}

// A run may have made a repository and not have come to say so. It is stopped first, though it was made by hand.
func TestARunThatIsUnderWayIsStoppedAndWhatItMadeDeleted(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion, func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule, b.Spec.Suspend = "0 2 * * *", true })
	f.create(&slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand", Namespace: f.namespace}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
	})
	job := f.job(copying...)
	f.delete(backup)
	environment.Eventually(t, func() error {
		if err := f.get("by-hand", &slipwayv1alpha1.BackupRun{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the run is still there: %w", err)
		}
		return nil
	})
	f.delete(job) // as the garbage collector does, which is not here
	f.move(f.jobNamed("shop-delete"), nil)
	f.backupGone()
}

// Who deletes the run and its Job before a status tells of them takes away every trace of them but the Lease.
func TestARepositoryThatOnlyTheLeaseTellsOfIsDeleted(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion, func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule, b.Spec.Suspend = "0 2 * * *", true })
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if len(b.Finalizers) == 0 {
			return errors.New("it is not held")
		}
		return nil
	})
	subject := lock.Repository(backup)
	f.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: subject.Lease, Namespace: f.namespace, OwnerReferences: []metav1.OwnerReference{subject.Owner}, Labels: map[string]string{subject.Label: subject.Value},
	}})
	f.delete(backup)
	f.move(f.jobNamed("shop-delete"), nil)
	f.backupGone()
}

// The Secrets go first, and in a namespace that is being deleted nobody brings them back.
func TestANamespaceThatIsDeletedIsNotHeldUpForARepository(t *testing.T) {
	env.StartOperator(t, nil)
	for name, secret := range map[string]string{"the credentials are gone": "slipway-backup", "the password is gone": "shop-encryption", "everything is there": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			backup := f.backup(withDeletion)
			f.move(f.job(copying...), nil)
			f.move(f.job(mover.StepMaintain), nil)
			if secret != "" {
				f.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret, Namespace: f.namespace}})
			}
			f.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
			f.delete(backup)
			f.backupGone()
		})
	}
}

// Whatever is under way, and whatever the server of the bucket does: nothing of ours holds up a namespace that is being deleted.
func TestNothingHoldsUpANamespaceThatIsDeleted(t *testing.T) {
	env.StartOperator(t, nil)
	for name, begin := range map[string]func(f *fixture){
		"a run copies": func(f *fixture) {
			f.backup(withDeletion)
			f.work(f.job(copying...), mover.StepSnapshot)
		},
		"a run that does not reach the server is tried again": func(f *fixture) {
			f.backup(withDeletion)
			f.move(f.job(copying...), refused("Unreachable"))
		},
		"old copies are being removed": func(f *fixture) {
			f.backup(withDeletion)
			f.move(f.job(copying...), nil)
			f.work(f.job(mover.StepMaintain), mover.StepMaintain)
		},
		"a drill restores": func(f *fixture) {
			f.copied(withDeletion)
			f.ask("one")
			f.work(f.job(drilling...), mover.StepRestore)
		},
		"a Restore writes": func(f *fixture) {
			f.copied(withDeletion)
			f.create(&slipwayv1alpha1.Restore{
				ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: f.namespace},
				Spec: slipwayv1alpha1.RestoreSpec{
					Backup: &slipwayv1alpha1.LocalReference{Name: "shop"},
					Target: slipwayv1alpha1.RestoreTarget{Claim: "restored", Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("1Gi")}},
				},
			})
			f.work(f.job(mover.StepRestore), mover.StepRestore)
		},
		"the repository is being deleted": func(f *fixture) {
			f.delete(f.copied(withDeletion))
			f.work(f.jobNamed("shop-delete"), mover.StepDelete)
		},
		"the deletion of the repository is refused a pod": func(f *fixture) {
			f.delete(f.copied(withDeletion))
			job := f.jobNamed("shop-delete")
			f.says("Job", "batch/v1", job.Name, job.UID, "FailedCreate", pods("exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"))
		},
		"the deletion of the repository does not reach the server": func(f *fixture) {
			f.delete(f.copied(withDeletion))
			f.move(f.jobNamed("shop-delete"), refused("Unreachable"))
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				if !strings.Contains(b.Status.Message, "tried again (Unreachable: ") {
					return errors.New(b.Status.Message)
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			begin(f)
			f.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
			lists := []client.ObjectList{&slipwayv1alpha1.BackupList{}, &slipwayv1alpha1.BackupRunList{}, &slipwayv1alpha1.RestoreList{}, &batchv1.JobList{}}
			// There is no controller of namespaces here. It deletes everything, in any order, and goes on as long as there is something.
			environment.Eventually(t, func() error {
				left := f.sweep(lists)
				if len(left) == 0 {
					return nil
				}
				return fmt.Errorf("there are still %v", left)
			})
		})
	}
}

// sweep deletes all objects of some kinds, and returns what there was.
func (f *fixture) sweep(lists []client.ObjectList) (left []string) {
	f.Helper()
	for _, list := range lists {
		if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
			f.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, _ := item.(client.Object)
			left = append(left, fmt.Sprintf("%T %s, held by %v", object, object.GetName(), object.GetFinalizers()))
			f.delete(object)
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	return left
}

// work plays that a step of a Job runs.
func (f *fixture) work(job *batchv1.Job, step mover.Step) {
	f.Helper()
	if err := f.cluster.Work(f.Context(), job, step); err != nil {
		f.Fatal(err)
	}
}

func TestABackupThatNeverRanLeavesAtOnce(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion, func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule, b.Spec.Suspend = "0 2 * * *", true })
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if len(b.Finalizers) == 0 {
			return errors.New("it is not held")
		}
		return nil
	})
	f.delete(backup)
	f.backupGone()
}

// pinned makes the Secret that a Backup of the same name has left, with the ID of a repository that has copies.
func (f *fixture) pinned() {
	f.Helper()
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-encryption", Namespace: f.namespace},
		StringData: map[string]string{"password": "secret", "repositoryID.shop": workload.RepositoryID},
	})
}

// Its run only ever waited, so whatever is at the destination is older.
func TestABackupWhoseRunNeverHadAJobDeletesNothing(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]struct {
		change func(*fixture, *slipwayv1alpha1.Backup)
		reason string
	}{
		"there is no such source": {func(_ *fixture, b *slipwayv1alpha1.Backup) { b.Spec.Source = "shop-dat" }, slipwayv1alpha1.ReasonSourceNotFound},
		"there are no credentials": {func(f *fixture, _ *slipwayv1alpha1.Backup) {
			f.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "slipway-backup", Namespace: f.namespace}})
		}, slipwayv1alpha1.ReasonSecretNotFound},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.pinned()
			backup := f.backup(withDeletion, func(b *slipwayv1alpha1.Backup) { tc.change(f, b) })
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				if last := b.Status.LastRun; last == nil || last.Reason != tc.reason {
					return fmt.Errorf("the last run is %+v", last)
				}
				return nil
			})
			f.delete(backup)
			f.backupGone()
			jobs := &batchv1.JobList{}
			if err := env.Client.List(t.Context(), jobs, client.InNamespace(f.namespace)); err != nil || len(jobs.Items) != 0 {
				t.Errorf("there are Jobs: %+v, %v", jobs.Items, err)
			}
			key := &corev1.Secret{}
			if err := f.get("shop-encryption", key); err != nil || string(key.Data["repositoryID.shop"]) != workload.RepositoryID {
				t.Errorf("the key holds %q, %v", key.Data, err)
			}
		})
	}
}

// Its run had a Job, and nobody knows which repository it made: one that is older than the Backup is not deleted.
func TestAnOlderRepositoryStays(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.pinned()
	backup := f.backup(withDeletion)
	job := f.job(copying...)
	f.delete(backup)
	f.delete(job)
	deletion := f.jobNamed("shop-delete")
	config := &mover.Config{}
	if err := json.Unmarshal([]byte(deletion.Spec.Template.Annotations["slipway.dev/mover-config"]), config); err != nil {
		t.Fatal(err)
	}
	if made := backup.CreationTimestamp.Time; config.Repository.ID != "" || !config.Delete.MadeSince.Equal(made) {
		t.Errorf("it may delete %+v of %q, want what was made since %s", config.Delete, config.Repository.ID, made)
	}
	f.move(deletion, refused("WrongRepository"))
	f.backupGone()
	environment.Eventually(t, func() error { return f.hasEvent(slipwayv1alpha1.ReasonRepositoryLeft, "stays there") })
}

// Nobody knows which repository it made, and nobody can look for it without the Secrets.
func TestABackupWithoutSecretsLeavesAtOnce(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	backup := f.backup(withDeletion)
	job := f.job(copying...)
	f.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "slipway-backup", Namespace: f.namespace}})
	f.delete(backup)
	f.delete(job)
	f.backupGone()
	environment.Eventually(t, func() error { return f.hasEvent(slipwayv1alpha1.ReasonRepositoryLeft, "stays there") })
}

// Nobody can write to it: neither a run nor a deletion waits for that.
func TestAnImmutableKeyIsInNobodysWay(t *testing.T) {
	env.StartOperator(t, nil)
	tests := map[string]map[string]string{
		"with the password alone":                 {"password": "secret"},
		"with what an older release has noted":    {"password": "secret", "repositoryID": workload.RepositoryID},
		"with the ID under the key of the Backup": {"password": "secret", "repositoryID.shop": workload.RepositoryID},
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			immutable := true
			f.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-encryption", Namespace: f.namespace}, StringData: data, Immutable: &immutable,
			})
			backup := f.backup(withDeletion)
			f.move(f.job(copying...), nil)
			f.move(f.job(mover.StepMaintain), nil)
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				if b.Status.RepositoryID != workload.RepositoryID {
					return errors.New(b.Status.Message)
				}
				return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady)
			})
			// Another run is due, now that the ID is known: nobody has seen to the slots of two hours.
			environment.Eventually(t, func() error {
				if err := f.get("shop", backup); err != nil {
					return err
				}
				backup.Spec.Schedule = "0 * * * *"
				return env.Client.Update(t.Context(), backup)
			})
			environment.Eventually(t, func() error {
				if err := f.get("shop", backup); err != nil {
					return err
				}
				backup.Status.LastSlot = &metav1.Time{Time: backup.CreationTimestamp.Add(-2 * time.Hour)}
				return env.Client.Status().Update(t.Context(), backup)
			})
			f.job(copying...)
			f.delete(backup)
			// As the garbage collector does, which is not here. The runs themselves may have gone by now.
			jobs := &batchv1.JobList{}
			if err := env.Client.List(t.Context(), jobs, client.InNamespace(f.namespace), client.HasLabels{slipwayv1alpha1.LabelBackupRun}); err != nil {
				t.Fatal(err)
			}
			for i := range jobs.Items {
				f.delete(&jobs.Items[i])
			}
			f.move(f.jobNamed("shop-delete"), nil)
			f.backupGone()
		})
	}
}

// Two Backups with one password have a repository each.
func TestBackupsMayShareAPassword(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: f.namespace},
		// An older release kept the ID of the other one here.
		StringData: map[string]string{"password": "secret", "repositoryID": "of-another"},
	})
	f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.Encryption = &slipwayv1alpha1.LocalReference{Name: "shared"} })
	f.move(f.job(copying...), nil)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if b.Status.RepositoryID == "" {
			return errors.New(b.Status.Message)
		}
		return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady)
	})
	key := &corev1.Secret{}
	if err := f.get("shared", key); err != nil || string(key.Data["repositoryID.shop"]) != workload.RepositoryID || string(key.Data["repositoryID"]) != "of-another" {
		t.Errorf("the key holds %q, %v", key.Data, err)
	}
}

// What an older release noted becomes what this one does.
func TestTheIDOfAnOlderReleaseIsTakenOver(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-encryption", Namespace: f.namespace},
		StringData: map[string]string{"password": "secret", "repositoryID": workload.RepositoryID},
	})
	f.backup()
	f.move(f.job(copying...), nil)
	environment.Eventually(t, func() error {
		key := &corev1.Secret{}
		if err := f.get("shop-encryption", key); err != nil {
			return err
		}
		if _, old := key.Data["repositoryID"]; old || string(key.Data["repositoryID.shop"]) != workload.RepositoryID {
			return fmt.Errorf("the key holds %q", key.Data)
		}
		return nil
	})
}
