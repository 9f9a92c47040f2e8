//go:build apitest

package restore_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// Somebody takes the labels of the Job away and changes whose the volume is. What runs is not begun anew.
func TestAJobWithoutLabelsGoesOn(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	f.pod(job)
	f.wait(slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "restored", Namespace: f.namespace}}
	for _, object := range []client.Object{claim, job} {
		if err := env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null,"annotations":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	restore := f.wait(slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if err := env.Client.Patch(t.Context(), restore, touch); err != nil {
		t.Fatal(err)
	}
	environment.Quiet(t, time.Second, func() string {
		if err := f.get("again", restore); err != nil {
			return err.Error()
		}
		return restore.ResourceVersion
	})
	if restore.Status.Reason != slipwayv1alpha1.ReasonTransferring {
		t.Errorf("it is %s: %s", restore.Status.Reason, restore.Status.Message)
	}
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
}

// A Job is not changed, so drift is that it has gone. The volume is marked, so the same attempt goes on.
func TestAJobThatSomebodyDeletesIsRecreated(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	first := job.UID
	if err := env.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		job = &batchv1.Job{}
		if err := f.get("again-restore-1", job); err != nil {
			return err
		}
		if job.UID == first {
			return errors.New("it is still there")
		}
		return nil
	})
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
}
