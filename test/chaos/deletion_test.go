//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// deletions is how often applications are deleted. The variable ROUNDS changes it.
	deletions = 5
	// deletedTogether is how many at a time.
	deletedTogether = 8
	// disturbances is how often the API server is killed before. After several failures
	// within two minutes each watch of client-go pauses for a time of its own: of one kind
	// something is seen long before it is seen of another.
	disturbances = 4
)

// What is deleted while the API server fails goes with all its pods, and nothing of it is
// made again. An operator that sees the end of a Deployment before the end of its owner
// must not make another one for it: the garbage collector, whose watches are broken too,
// would take it for the first one, and leave the ReplicaSets and pods of that for good.
func TestWhatIsDeletedInAStormGoesForGood(t *testing.T) {
	seed, rounds := settings(t, deletions)
	if rounds == 0 {
		t.Fatal("ROUNDS=0")
	}
	measured(t, "seed %d, %d rounds (again: make test-chaos-deletion SEED=%d ROUNDS=%d)", seed, rounds, seed, rounds)
	plan := newPlanner(seed)
	var took []time.Duration
	for round := range rounds {
		d := &deletion{deployments: map[string]map[types.UID]bool{}, runner: &runner{
			T: t, namespace: newNamespace(t), plan: plan, report: newReport(), greetings: map[string]int64{},
		}}
		d.createAll()
		d.disturb()
		took = append(took, d.deleteAll())
		measured(t, "round %d: everything was gone %v after the kill", round+1, took[round])
	}
	slices.Sort(took)
	measured(t, "%d applications deleted in %d rounds, none of their Deployments was seen again; all was gone after: min %v, median %v, max %v",
		rounds*deletedTogether, rounds, took[0], took[len(took)/2], took[len(took)-1])
}

// deletion is one time that applications are deleted.
type deletion struct {
	*runner
	// deployments are the UIDs of those that were seen of each application.
	deployments map[string]map[types.UID]bool
}

func (d *deletion) createAll() {
	d.Helper()
	for i := range deletedTogether {
		a := newApp(fmt.Sprintf("app-%d", i), i)
		d.plan.apps[a.name] = a
		if err := d.carryOut(d.Context(), change{operation: create, want: *a}); err != nil {
			d.fail(err)
		}
	}
	d.see(d.converge().deployments.Items)
}

func (d *deletion) see(deployments []appsv1.Deployment) {
	for i := range deployments {
		name := deployments[i].Name
		if d.deployments[name] == nil {
			d.deployments[name] = map[types.UID]bool{}
		}
		d.deployments[name][deployments[i].UID] = true
	}
}

// within is a random moment from now.
func (d *deletion) within(most time.Duration) time.Time {
	return time.Now().Add(time.Duration(d.plan.random.Int64N(int64(most))))
}

func (d *deletion) disturb() {
	d.Helper()
	for range disturbances {
		if _, err := d.strike(d.Context(), kill{victim: apiServer}); err != nil {
			d.fail(err)
		}
		if err := insist(d.Context(), "wait for the API server", func(ctx context.Context) error {
			_, err := read(ctx, d.namespace)
			return err
		}); err != nil {
			d.fail(err)
		}
		await(d.Context(), d.within(2*time.Second))
	}
}

// deleteAll deletes the applications, kills etcd or the API server meanwhile, and returns
// how long it took after that until everything was gone.
func (d *deletion) deleteAll() time.Duration {
	d.Helper()
	ctx, stop := context.WithCancel(d.Context())
	var watching, deleting sync.WaitGroup
	defer func() { stop(); watching.Wait() }()
	watching.Go(func() { d.watch(ctx) })
	names := slices.Sorted(maps.Keys(d.plan.apps))
	errs := make([]error, len(names))
	for i, name := range names {
		a, moment := d.plan.apps[name], d.within(250*time.Millisecond)
		deleting.Go(func() {
			await(d.Context(), moment)
			errs[i] = d.carryOut(d.Context(), change{operation: remove, want: *a})
		})
	}
	await(d.Context(), time.Now().Add(100*time.Millisecond))
	await(d.Context(), d.within(250*time.Millisecond))
	killed, err := d.strike(d.Context(), kill{victim: []victim{etcd, apiServer}[d.plan.random.IntN(2)]})
	deleting.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		d.fail(err)
	}
	d.nothingLeft()
	took := time.Since(killed).Round(10 * time.Millisecond)
	stop()
	watching.Wait()
	for name, seen := range d.deployments {
		if len(seen) > 1 {
			d.fail(fmt.Errorf("the Deployment of %s was made %d times", name, len(seen)))
		}
	}
	clear(d.plan.apps)
	return took
}

// watch looks for Deployments until the context ends.
func (d *deletion) watch(ctx context.Context) {
	for ctx.Err() == nil {
		list := &appsv1.DeploymentList{}
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		// The API server is away for a while: then there is nothing in the list.
		_ = cluster.List(limited, list, client.InNamespace(d.namespace))
		cancel()
		d.see(list.Items)
		await(ctx, time.Now().Add(glance))
	}
}
