//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// defaultRounds can be changed with the variable ROUNDS.
const defaultRounds = 100

func TestWhateverIsKilledTheEndIsWhatTheSpecsSay(t *testing.T) {
	seed, rounds := settings(t, defaultRounds)
	measured(t, "seed %d, %d rounds (again: make test-chaos SEED=%d ROUNDS=%d)", seed, rounds, seed, rounds)
	r := &runner{
		T: t, namespace: newNamespace(t), plan: newPlanner(seed), report: newReport(),
		before: map[string]map[types.UID]bool{}, rollouts: map[string]int{}, greetings: map[string]int64{},
		journal: &journal{namespace: newNamespace(t)},
	}
	defer func() {
		for _, line := range r.report.lines() {
			measured(t, "%s", line)
		}
	}()
	r.keepJournal()

	for range rounds {
		next := r.plan.next()
		r.play(next)
		if next.settle || next.number == rounds {
			r.settle()
		}
	}
	r.killEverything()
	r.deleteEverything()
}

// settings reads the variables SEED and ROUNDS. Defaults: a random one, and usual.
func settings(t *testing.T, usual int) (seed uint64, rounds int) {
	t.Helper()
	seed, rounds = uint64(rand.Uint32()), usual
	var err error
	if text := os.Getenv("SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	if text := os.Getenv("ROUNDS"); text != "" {
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("ROUNDS: %v", err)
		}
	}
	return seed, rounds
}

func (r *runner) keepJournal() {
	ctx, cancel := context.WithCancel(r.Context())
	var done sync.WaitGroup
	done.Go(func() { r.journal.write(ctx) })
	r.Cleanup(func() { cancel(); done.Wait() })
}

// killEverything kills both operators, the API server and etcd at the same time, when
// nothing is left to do: afterwards nothing is different.
func (r *runner) killEverything() {
	r.Helper()
	r.complete()
	before := r.quiet()
	holder, err := cluster.LeaseHolder(r.Context())
	if err != nil {
		r.fail(err)
	}
	pods, err := cluster.OperatorPods(r.Context())
	if err != nil {
		r.fail(err)
	}
	start := time.Now()
	for i := range pods {
		err = errors.Join(err, cluster.KillOperator(&pods[i]))
	}
	if err = errors.Join(err, cluster.KillProgram(string(apiServer)), cluster.KillProgram(string(etcd))); err != nil {
		r.fail(err)
	}
	r.note("killed everything")
	err = insist(r.Context(), "wait for a new leader", func(ctx context.Context) error {
		now, err := cluster.LeaseHolder(ctx)
		if err != nil {
			return err
		}
		if now == holder {
			return fmt.Errorf("the Lease is still held by %q", now)
		}
		return cluster.OperatorHasLookedAtEverything(ctx)
	})
	if err != nil {
		r.fail(err)
	}
	measured(r.T, "after a kill of everything at once a new leader has looked at everything after %v", time.Since(start).Round(10*time.Millisecond))
	r.settle()
	if diff := cmp.Diff(before, r.quiet()); diff != "" {
		r.fail(fmt.Errorf("a kill of everything at steady state has changed something (-before +after):\n%s", diff))
	}
}

// complete waits until the operator has all its pods.
func (r *runner) complete() {
	r.Helper()
	if err := insist(r.Context(), "wait for the operator", cluster.OperatorComplete); err != nil {
		r.fail(err)
	}
}

// deleteEverything deletes the applications that are left.
func (r *runner) deleteEverything() {
	r.Helper()
	for name, a := range r.plan.apps {
		if err := r.carryOut(r.Context(), change{operation: remove, want: *a}); err != nil {
			r.fail(err)
		}
		delete(r.plan.apps, name)
	}
	r.nothingLeft()
}
