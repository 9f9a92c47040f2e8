//go:build apitest

package backup_test

import (
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// A slot that was seen to is not run again, whatever becomes of its run. The history is for people.
func TestARunThatSomebodyDeletesIsNotRunAgain(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup()
	if err := f.cluster.Move(t.Context(), f.job(copying...), nil); err != nil {
		t.Fatal(err)
	}
	backup := f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionVerified, metav1.ConditionTrue, slipwayv1alpha1.ReasonVerified)
	})
	last := backup.Status.LastBackupTime
	for _, run := range f.runs() {
		if err := env.Client.Delete(t.Context(), &run, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if len(f.runs()) != 0 {
			return errors.New("the run is still there")
		}
		// What is known of the copy stays true.
		if b.Status.LastBackupTime == nil || !b.Status.LastBackupTime.Equal(last) {
			return errors.New("the time of the newest verified copy has changed")
		}
		return has(b, slipwayv1alpha1.ConditionVerified, metav1.ConditionTrue, slipwayv1alpha1.ReasonVerified)
	})
}

// The Job that removes old copies is not changed, so drift is that it has gone.
func TestAJobThatSomebodyDeletesIsRecreated(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup()
	if err := f.cluster.Move(t.Context(), f.job(copying...), nil); err != nil {
		t.Fatal(err)
	}
	keep := f.job(mover.StepMaintain)
	first := keep.UID
	if err := env.Client.Delete(t.Context(), keep, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		again := &batchv1.Job{}
		if err := f.get(keep.Name, again); err != nil {
			return err
		}
		if again.UID == first {
			return errors.New("it is still there")
		}
		return nil
	})
}
