//go:build apitest

package restore_test

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one test's namespace with a suspended Backup and the Secrets of its repository.
type fixture struct {
	*testing.T
	namespace string
	cluster   *workload.Cluster
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, namespace: env.Namespace(t), cluster: &workload.Cluster{Client: env.Client}}
	for _, name := range []string{"slipway-backup", "shop-encryption"} {
		f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, StringData: map[string]string{"password": "x", "accessKeyID": "a", "secretAccessKey": "b"}})
	}
	f.create(&slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Schedule: "0 2 * * *", Destination: "s3://bucket", Suspend: true},
	})
	return f
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	if err := env.Client.Create(f.Context(), object); err != nil {
		f.Fatalf("create %T: %v", object, err)
	}
}

// claim makes a volume claim, changed as asked.
func (f *fixture) claim(name string, change ...func(*corev1.PersistentVolumeClaim)) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	for _, c := range change {
		c(claim)
	}
	f.create(claim)
}

func (f *fixture) delete(object client.Object) {
	f.Helper()
	if err := env.Client.Delete(f.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		f.Fatalf("delete %T: %v", object, err)
	}
}

// gone waits until an object has gone. One that is made anew is another one.
func (f *fixture) gone(object client.Object) {
	f.Helper()
	uid := object.GetUID()
	environment.Eventually(f, func() error {
		err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(object), object)
		if err == nil && object.GetUID() == uid {
			return fmt.Errorf("%T %s is still there", object, object.GetName())
		}
		return client.IgnoreNotFound(err)
	})
}

// noJob wants a Job not to be there.
func (f *fixture) noJob(name string) {
	f.Helper()
	if err := f.get(name, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		f.Errorf("the Job %q is there (%v)", name, err)
	}
}

// restore makes the Restore "again" of the newest copy to a new volume, changed as asked.
func (f *fixture) restore(change ...func(*slipwayv1alpha1.RestoreSpec)) {
	f.Helper()
	f.restoreCalled("again", change...)
}

func (f *fixture) restoreCalled(name string, change ...func(*slipwayv1alpha1.RestoreSpec)) {
	f.Helper()
	restore := &slipwayv1alpha1.Restore{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec: slipwayv1alpha1.RestoreSpec{
			Backup: &slipwayv1alpha1.LocalReference{Name: "shop"},
			Target: slipwayv1alpha1.RestoreTarget{Claim: "restored", Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("1Gi")}},
		},
	}
	for _, c := range change {
		c(&restore.Spec)
	}
	f.create(restore)
}

func (f *fixture) get(name string, into client.Object) error {
	return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, into)
}

// job waits for the Job of an attempt of "again".
func (f *fixture) job(attempt int) *batchv1.Job {
	f.Helper()
	return f.jobCalled(fmt.Sprintf("again-restore-%d", attempt))
}

func (f *fixture) jobCalled(name string) *batchv1.Job {
	f.Helper()
	job := &batchv1.Job{}
	environment.Eventually(f, func() error { return f.get(name, job) })
	return job
}

// wait waits until "again" has a phase and a reason.
func (f *fixture) wait(phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.Restore {
	f.Helper()
	return f.waitFor("again", phase, reason)
}

func (f *fixture) waitFor(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.Restore {
	f.Helper()
	restore := &slipwayv1alpha1.Restore{}
	environment.Eventually(f, func() error {
		if err := f.get(name, restore); err != nil {
			return err
		}
		if restore.Status.Phase != phase || restore.Status.Reason != reason {
			return fmt.Errorf("it is %s (%s: %s), want %s (%s)", restore.Status.Phase, restore.Status.Reason, restore.Status.Message, phase, reason)
		}
		return nil
	})
	return restore
}
