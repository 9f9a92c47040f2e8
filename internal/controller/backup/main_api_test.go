//go:build apitest

package backup_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// The steps of a run, and of what follows one that completed.
var (
	copying = []mover.Step{mover.StepSnapshot, mover.StepVerify}
	keeping = []mover.Step{mover.StepMaintain, mover.StepExpire}
)

// fixture is one test's namespace with a volume.
type fixture struct {
	*testing.T
	namespace string
	cluster   *workload.Cluster
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, namespace: env.Namespace(t), cluster: &workload.Cluster{Client: env.Client}}
	f.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data", Namespace: f.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "slipway-backup", Namespace: f.namespace},
		StringData: map[string]string{"accessKeyID": "a", "secretAccessKey": "b"},
	})
	return f
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	if err := env.Client.Create(f.Context(), object); err != nil {
		f.Fatalf("create %T: %v", object, err)
	}
}

// backup makes a Backup without a schedule, changed as asked.
func (f *fixture) backup(change ...func(*slipwayv1alpha1.Backup)) *slipwayv1alpha1.Backup {
	f.Helper()
	backup := &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
		Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket/prefix"},
	}
	for _, c := range change {
		c(backup)
	}
	f.create(backup)
	return backup
}

// wait waits until the status of the Backup is as the check wants it.
func (f *fixture) wait(check func(*slipwayv1alpha1.Backup) error) *slipwayv1alpha1.Backup {
	f.Helper()
	backup := &slipwayv1alpha1.Backup{}
	environment.Eventually(f, func() error {
		if err := f.get("shop", backup); err != nil {
			return err
		}
		return check(backup)
	})
	return backup
}

func (f *fixture) get(name string, into client.Object) error {
	return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, into)
}

// runs are the runs of the Backup.
func (f *fixture) runs() []slipwayv1alpha1.BackupRun {
	f.Helper()
	list := &slipwayv1alpha1.BackupRunList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// job waits for the Job that has these steps and has not ended.
func (f *fixture) job(steps ...mover.Step) *batchv1.Job {
	f.Helper()
	var found *batchv1.Job
	environment.Eventually(f, func() error {
		list := &batchv1.JobList{}
		if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		found = nil
		for i := range list.Items {
			job := &list.Items[i]
			if job.DeletionTimestamp.IsZero() && len(job.Status.Conditions) == 0 && slices.Equal(workload.StepsOf(job), steps) {
				found = job
			}
		}
		if found == nil {
			backup := &slipwayv1alpha1.Backup{}
			err := f.get("shop", backup)
			return errors.Join(err, fmt.Errorf("no Job does %v: the Backup says %+v", steps, backup.Status))
		}
		return nil
	})
	return found
}

func has(backup *slipwayv1alpha1.Backup, conditionType string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(backup.Status.Conditions, conditionType)
	if c == nil || c.Status != status || c.Reason != reason {
		return fmt.Errorf("%s is %+v, want %s, %s", conditionType, c, status, reason)
	}
	return nil
}
