//go:build apitest

package backuprun_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// keepOf is the name of the Job that a message says to be in the way.
func keepOf(t *testing.T, message string) string {
	t.Helper()
	_, after, _ := strings.Cut(message, `Job "`)
	name, _, found := strings.Cut(after, `"`)
	if !found || !strings.HasPrefix(name, "shop-keep-") {
		t.Fatalf("the message %q names no Job", message)
	}
	return name
}

// A run costs its Job, a Lease and three statuses: it begins, it verifies, it has ended. Afterwards there is nothing to do.
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
	// While space is freed, nobody else writes to the repository.
	environment.Eventually(t, func() error {
		jobs := &batchv1.JobList{}
		if err := env.Client.List(t.Context(), jobs, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool { return strings.HasPrefix(job.Name, "shop-keep-") }) {
			return errors.New("no Job frees space yet")
		}
		return nil
	})
	f.run("shop-busy")
	busy := f.wait("shop-busy", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRepositoryBusy)
	keep := f.job(keepOf(t, busy.Status.Message))
	if err := f.cluster.Move(t.Context(), keep, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.cluster.Move(t.Context(), f.job("shop-busy-0-1"), nil); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-busy", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
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
	leases := 0
	for kind, count := range made {
		if kind.Resource == "leases" && kind.Verb != "get" {
			leases += count
		}
	}
	if made.Sum(requests.Status) > 8 || leases != 1 {
		t.Errorf("a run cost %v, of which %d writes of Leases", made, leases)
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
