//go:build apitest

package backup_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// A Backup that waits for its next slot costs nothing.
func TestABackupAtSteadyStateWritesNothing(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	backup := f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 2 31 12 *" })
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRun)
	})
	quiet := func() {
		environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
	}
	quiet()
	before := counter.Counts()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	if err := env.Client.Patch(t.Context(), backup, patch); err != nil {
		t.Fatal(err)
	}
	quiet()
	if made := counter.Counts().Since(before).In(f.namespace); len(made) != 0 {
		t.Errorf("another look at a Backup with nothing to do cost %v, want nothing", made)
	}
}
