//go:build apitest

package restore_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// A Restore that has ended costs nothing.
func TestARestoreThatHasEndedWritesNothing(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	f.restore()
	if err := f.cluster.Move(t.Context(), f.job(1), nil); err != nil {
		t.Fatal(err)
	}
	restore := f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	quiet := func() {
		environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
	}
	quiet()
	before := counter.Counts()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	if err := env.Client.Patch(t.Context(), restore, patch); err != nil {
		t.Fatal(err)
	}
	quiet()
	if made := counter.Counts().Since(before).In(f.namespace); len(made) != 0 {
		t.Errorf("another look at a Restore that has ended cost %v, want nothing", made)
	}
}
