//go:build apitest

package restore_test

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

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
