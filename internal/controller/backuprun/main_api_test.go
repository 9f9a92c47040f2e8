//go:build apitest

package backuprun_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var (
	env *environment.Environment

	errStillThere = errors.New("it is still there")
)

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one test's namespace with a suspended Backup, a volume and the Secrets that it needs.
type fixture struct {
	*testing.T
	namespace string
	cluster   *workload.Cluster
	backup    *slipwayv1alpha1.Backup
}

func newFixture(t *testing.T, change ...func(*slipwayv1alpha1.Backup)) *fixture {
	f := &fixture{T: t, namespace: env.Namespace(t), cluster: &workload.Cluster{Client: env.Client}}
	f.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data", Namespace: f.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	f.create(f.secret("slipway-backup", "accessKeyID", "secretAccessKey"))
	f.backup = &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Schedule: "0 2 * * *", Destination: "s3://bucket/prefix", Suspend: true},
	}
	for _, c := range change {
		c(f.backup)
	}
	f.create(f.backup)
	t.Cleanup(f.endRuns)
	return f
}

// endRuns deletes the runs that a test leaves: each takes one of the few places of the cluster, also from the next test.
func (f *fixture) endRuns() {
	ctx := context.Background()
	runs := &slipwayv1alpha1.BackupRunList{}
	if err := env.Client.List(ctx, runs, client.InNamespace(f.namespace)); err != nil {
		f.Error(err)
	}
	for i := range runs.Items {
		run := &runs.Items[i]
		letGo := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		err := errors.Join(client.IgnoreNotFound(env.Client.Delete(ctx, run)), client.IgnoreNotFound(env.Client.Patch(ctx, run, letGo)))
		if err != nil {
			f.Error(err)
		}
	}
}

func (f *fixture) secret(name string, keys ...string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, StringData: map[string]string{}}
	for _, key := range keys {
		secret.StringData[key] = "canary-" + key
	}
	return secret
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	if err := env.Client.Create(f.Context(), object); err != nil {
		f.Fatalf("create %T: %v", object, err)
	}
}

// run makes a run of the Backup by hand.
func (f *fixture) run(name string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec:       slipwayv1alpha1.BackupRunSpec{Backup: "shop"},
	}
	f.create(run)
	f.Cleanup(func() {
		// The operator of the next test would count it among those that run at a time.
		_ = env.Client.Delete(context.WithoutCancel(f.Context()), run)
	})
	return run
}

// job waits for a Job.
func (f *fixture) job(name string) *batchv1.Job {
	f.Helper()
	job := &batchv1.Job{}
	environment.Eventually(f, func() error {
		return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, job)
	})
	return job
}

// gone waits until a Job is not there any more.
func (f *fixture) gone(name string) {
	f.Helper()
	environment.Eventually(f, func() error {
		err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, &batchv1.Job{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			return errStillThere
		}
		return nil
	})
}

// wait waits until a run has a phase and a reason.
func (f *fixture) wait(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{}
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, run); err != nil {
			return err
		}
		if run.Status.Phase != phase || run.Status.Reason != reason {
			return fmt.Errorf("it is %s (%s: %s), want %s (%s)", run.Status.Phase, run.Status.Reason, run.Status.Message, phase, reason)
		}
		return nil
	})
	return run
}
