//go:build apitest

package backuprun_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// A run costs its Job and three statuses: it begins, it verifies, it has ended. Afterwards there is nothing to do.
func TestWritesAreAsFewAsTheyCanBe(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	// What is older than the first status that an operator writes is read once.
	f.run("shop-first")
	if err := f.cluster.Move(t.Context(), f.job("shop-first-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-first", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	quiet := func() {
		environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
	}
	quiet()

	before := counter.Counts()
	f.run("shop-now")
	if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	f.gone("shop-now-0-1")
	quiet()
	made := counter.Counts().Since(before).In(f.namespace)
	// Of the Backup: what it says of its newest run, and the Job that frees space.
	t.Logf("a run cost %v", made)
	if made.Of(requests.Status) > 8 {
		t.Errorf("a run cost %v", made)
	}

	before = counter.Counts()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	if err := env.Client.Patch(t.Context(), run, patch); err != nil {
		t.Fatal(err)
	}
	quiet()
	if made := counter.Counts().Since(before).In(f.namespace); len(made) != 0 {
		t.Errorf("another look at a run that has ended cost %v, want nothing", made)
	}
}
