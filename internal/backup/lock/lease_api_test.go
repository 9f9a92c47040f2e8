//go:build apitest

package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is a Backup, and what lets Jobs write to its repository.
type fixture struct {
	*testing.T
	backup  *slipwayv1alpha1.Backup
	writers lock.Writers
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, writers: lock.Writers{
		Applier: &apply.Applier{Client: env.Client, Live: env.Client, FieldManager: "slipway-test"},
		Live:    env.Client,
		Clock:   clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)),
	}}
	f.backup = f.make(env.Namespace(t))
	return f
}

func (f *fixture) make(namespace string) *slipwayv1alpha1.Backup {
	f.Helper()
	backup := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: namespace},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "data", Destination: "s3://bucket"},
	}
	f.must(env.Client.Create(f.Context(), backup))
	return backup
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// desired is a Job of the Backup that does a step.
func (f *fixture) desired(name, step string) *batchv1ac.JobApplyConfiguration {
	labels := map[string]string{slipwayv1alpha1.LabelBackup: f.backup.Name, slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway}
	return batchv1ac.Job(name, f.backup.Namespace).WithLabels(labels).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("slipway.dev/v1alpha1").WithKind("Backup").
			WithName(f.backup.Name).WithUID(f.backup.UID).WithController(true)).
		WithSpec(batchv1ac.JobSpec().WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().
			WithRestartPolicy(corev1.RestartPolicyNever).
			WithContainers(corev1ac.Container().WithName(step).WithImage("run:1")))))
}

// write makes a Job that writes.
func (f *fixture) write(name string) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := f.writers.Create(f.Context(), f.backup, f.backup, apply.Child{Desired: f.desired(name, "snapshot"), Current: job})
	return job, err
}

// end plays that a Job has ended.
func (f *fixture) end(job *batchv1.Job) {
	f.Helper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.Failed = &now, 1
	for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	f.must(env.Client.Status().Update(context.WithoutCancel(f.Context()), job))
}

func (f *fixture) delete(object client.Object) {
	f.Helper()
	f.must(env.Client.Delete(f.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// pod makes the pod of a Job.
func (f *fixture) pod(job *batchv1.Job) *corev1.Pod {
	f.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-" + string(job.UID[:5]), Namespace: job.Namespace, Labels: map[string]string{
			slipwayv1alpha1.LabelBackup: f.backup.Name, batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID),
		}},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	f.must(env.Client.Create(f.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	f.must(env.Client.Status().Update(f.Context(), pod))
	return pod
}

func (f *fixture) theLease() *coordinationv1.Lease {
	f.Helper()
	found := &coordinationv1.Lease{}
	f.must(env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.backup.Namespace, Name: "shop-repository"}, found))
	return found
}

// wantBusy wants a second Job to be refused because of the first one.
func (f *fixture) wantBusy(err error, holder string) {
	f.Helper()
	worst := outcome.Worst(err)
	if worst == nil || worst.Kind != outcome.Waiting || worst.Reason != slipwayv1alpha1.ReasonRepositoryBusy || worst.After <= 0 ||
		!strings.Contains(worst.Message, fmt.Sprintf("%q", holder)) {
		f.Errorf("got %+v (%v), want RepositoryBusy because of %q", worst, err, holder)
	}
}

func TestAJobWritesAloneUntilItHasEnded(t *testing.T) {
	f := newFixture(t)
	first, err := f.write("first")
	f.must(err)
	made := f.theLease()
	if got := lock.HolderOf(made); got != "first/"+string(f.backup.UID) || !lock.OwnedBy(made, f.backup.UID) {
		t.Errorf("the Lease names %q, and its owners are %v", got, made.OwnerReferences)
	}
	_, err = f.write("second")
	f.wantBusy(err, "first")
	if _, err := f.write("first"); err != nil {
		t.Errorf("the Job itself is refused: %v", err)
	}
	if now := f.theLease(); now.ResourceVersion != made.ResourceVersion {
		t.Errorf("who waits has written the Lease: %+v", now.Spec)
	}
	// Its pod goes on after the Job has gone, as on a node that does not answer.
	pod := f.pod(first)
	f.delete(first)
	_, err = f.write("second")
	f.wantBusy(err, "first")
	_, err = f.write("first")
	f.wantBusy(err, "first")
	pod.Status.Phase = corev1.PodFailed
	f.must(env.Client.Status().Update(t.Context(), pod))
	second, err := f.write("second")
	f.must(err)
	f.end(second)
	if _, err := f.write("third"); err != nil {
		t.Errorf("a Job that has ended is in the way: %v", err)
	}
	if now := f.theLease(); *now.Spec.LeaseTransitions != 3 {
		t.Errorf("the Lease had %d holders, want 3", *now.Spec.LeaseTransitions)
	}
}

// The Job of an earlier state of the owner is not made: the owner may have its result by now.
func TestNoJobIsMadeForAnOwnerThatHasChanged(t *testing.T) {
	f := newFixture(t)
	f.writers.Applier.Fresh = apply.NewFreshness(env.Client, env.Client)
	f.writers.Applier.Fresh.Saw(f.backup)
	changed := f.backup.DeepCopy()
	changed.Spec.Suspend = true
	f.must(env.Client.Update(t.Context(), changed))
	if _, err := f.write("first"); err == nil || !strings.Contains(err.Error(), `Backup "shop"`) {
		t.Errorf("the error is %v", err)
	}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: f.backup.Namespace, Name: "first"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job was made: %v", err)
	}
	f.backup = changed
	_, err := f.write("first")
	f.must(err)
}

// An operator that dies after it has taken the Lease blocks nobody. When it was only slow, its Job goes.
func TestWhoHasTheLeaseAndNoJobIsNotWaitedFor(t *testing.T) {
	f := newFixture(t)
	slow := "slow/" + string(f.backup.UID)
	f.must(f.writers.Take(t.Context(), f.backup, slow))
	fast, err := f.write("fast")
	f.must(err)

	f.wantBusy(f.writers.Confirm(t.Context(), f.backup, slow), "fast")
	// The whole of it, with another one that comes in between.
	f.end(fast)
	between := &interrupted{Client: env.Client, before: func() { f.must(f.writers.Take(t.Context(), f.backup, "other/uid")) }}
	late := f.writers
	late.Applier = &apply.Applier{Client: between, Live: env.Client, FieldManager: "slipway-test"}
	job := &batchv1.Job{}
	err = late.Create(t.Context(), f.backup, f.backup, apply.Child{Desired: f.desired("late", "maintain"), Current: job})
	f.wantBusy(err, "other")
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: f.backup.Namespace, Name: "late"}, job); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.Join(err, errors.New("the Job of who has lost the Lease is still there"))
		}
		return nil
	})
}

// interrupted lets something happen before a Job is made.
type interrupted struct {
	client.Client
	before func()
}

func (i *interrupted) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	if _, ok := object.(*batchv1.Job); ok {
		i.before()
	}
	return i.Client.Patch(ctx, object, patch, options...)
}

func (i *interrupted) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if object.GetObjectKind().GroupVersionKind().Kind == "Job" {
		i.before()
	}
	return i.Client.Create(ctx, object, options...)
}

func TestALeaseThatIsDeletedOrOfAnEarlierBackupChangesNothing(t *testing.T) {
	f := newFixture(t)
	first, err := f.write("first")
	f.must(err)
	f.delete(f.theLease())
	_, err = f.write("second")
	f.wantBusy(err, "first")
	f.end(first)
	second, err := f.write("second")
	f.must(err)

	// A Backup of the same name has the same repository. The Lease must not go with the earlier one.
	f.delete(f.backup)
	f.backup = f.make(f.backup.Namespace)
	_, err = f.write("third")
	f.wantBusy(err, "second")
	f.end(second)
	_, err = f.write("third")
	f.must(err)
	if now := f.theLease(); !lock.OwnedBy(now, f.backup.UID) {
		t.Errorf("the Lease goes with %v", now.OwnerReferences)
	}
}

func TestALeaseOfSomebodyElseIsLeftAlone(t *testing.T) {
	f := newFixture(t)
	identity := "theirs"
	f.must(env.Client.Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-repository", Namespace: f.backup.Namespace},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &identity},
	}))
	_, err := f.write("first")
	if worst := outcome.Worst(err); worst == nil || worst.Reason != slipwayv1alpha1.ReasonNameConflict {
		t.Errorf("got %v", err)
	}
	if got := lock.HolderOf(f.theLease()); got != identity {
		t.Errorf("it names %q", got)
	}
}

func TestAJobDoesNotWaitForItsOwnPodWithoutALabel(t *testing.T) {
	f := newFixture(t)
	job, err := f.write("first")
	f.must(err)
	f.pod(job)
	f.must(env.Client.Patch(t.Context(), job, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"slipway.dev/backup":null}}}`))))
	found, err := f.write("first")
	if err != nil || found.UID != job.UID {
		t.Errorf("the Job is %q (%v), want %q", found.UID, err, job.UID)
	}
}

func TestAJobThatOnlyReadsIsNotWaitedFor(t *testing.T) {
	f := newFixture(t)
	reading := &batchv1.Job{}
	_, err := f.writers.Applier.CreateOnly(t.Context(), f.backup, apply.Child{Desired: f.desired("reading", "restore"), Current: reading})
	f.must(err)
	f.pod(reading)
	_, err = f.write("first")
	f.must(err)
}

// Who has a subject keeps others of the process from beginning, whatever became of its Job.
func TestAReconcileDoesNotBeginWhileAnotherOneMakesAJob(t *testing.T) {
	f := newFixture(t)
	serial := &lock.Serial{}
	during := f.writers
	during.Serial = serial
	between := &interrupted{Client: env.Client, before: func() {
		err := during.Create(t.Context(), f.backup, f.backup, apply.Child{Desired: f.desired("second", "snapshot"), Current: &batchv1.Job{}})
		if quiet := (&outcome.Error{}); !errors.As(err, &quiet) || quiet.Kind != outcome.Quiet || quiet.After <= 0 {
			t.Errorf("the second one gets %v", err)
		}
	}}
	first := during
	first.Applier = &apply.Applier{Client: between, Live: env.Client, FieldManager: "slipway-test"}
	job := &batchv1.Job{}
	f.must(first.Create(t.Context(), f.backup, f.backup, apply.Child{Desired: f.desired("first", "snapshot"), Current: job}))
	if got := lock.HolderOf(f.theLease()); got != "first/"+string(f.backup.UID) {
		t.Errorf("the Lease names %q", got)
	}
	f.end(job)
	f.must(during.Create(t.Context(), f.backup, f.backup, apply.Child{Desired: f.desired("second", "snapshot"), Current: &batchv1.Job{}}))
}

// Operators that know nothing of each other, with many Jobs each, want to write at the same time. Who is to wait does so, for
// less time than the operator would.
func TestOfManyThatBeginAtTheSameTimeOneWrites(t *testing.T) {
	f := newFixture(t)
	const operators, each = 4, 3
	var writing, done atomic.Int32
	var all sync.WaitGroup
	for operator := range operators {
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("job-%d-%d", operator, i)
				for t.Context().Err() == nil {
					job, err := f.write(name)
					if err != nil {
						worst := outcome.Worst(err)
						if worst != nil && worst.Kind != outcome.Waiting {
							t.Errorf("%s: %v", name, err)
							return
						}
						wait := time.Second
						if worst != nil && worst.After > 0 {
							wait = worst.After
						}
						<-time.After(wait / 20)
						continue
					}
					if now := writing.Add(1); now > 1 {
						t.Errorf("%d Jobs write at the same time", now)
					}
					writing.Add(-1)
					f.end(job)
					done.Add(1)
					break
				}
			}
		})
	}
	all.Wait()
	if got := done.Load(); got != operators*each {
		t.Errorf("%d Jobs of %d have written", got, operators*each)
	}
}
