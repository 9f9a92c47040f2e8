package scenario

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

// Mix is a random scenario with random faults.
type Mix struct {
	// Seed makes the same mix again.
	Seed uint64
	// Scenario is made of steps of the kind's scenarios.
	Scenario Scenario
	// draws are the faults, as shares of the writes of the reference, which is not known
	// before it is played.
	draws []draw
	// late is by how much each kind is shown late.
	late map[string]time.Duration
}

type draw struct {
	share float64
	fault fault.Fault
}

// SameSteps is how many mixes have the same steps, with other faults: the seeds that
// divided by it are the same. What they are compared with is played once for all.
const SameSteps = 4

// Random makes the mix of a seed.
func Random(kind Kind, seed uint64) Mix {
	source := rand.New(rand.NewPCG(seed/SameSteps, 0))
	pods := map[string]workload.Behaviour{}
	var pool []Step
	for _, s := range kind.Scenarios {
		maps.Copy(pods, s.Pods)
		pool = append(pool, s.Steps...)
	}
	mix := Mix{Seed: seed, late: map[string]time.Duration{}, Scenario: Scenario{
		Kind: kind.Name, Name: fmt.Sprintf("seed %d", seed), About: "A random mix.", Pods: pods, Tolerant: true,
		Controllers: kind.Controllers, ObservedHere: kind.ObservedHere,
	}}
	for range 2 + source.IntN(4) {
		step := pool[source.IntN(len(pool))]
		// Otherwise timing decides which states are skipped, and with that what is kept when a
		// later step cannot be done.
		step.Together, step.Begun, step.Shows = false, false, nil
		step.Within = longestWithin(pool, step)
		mix.Scenario.Steps = append(mix.Scenario.Steps, step)
	}
	source = rand.New(rand.NewPCG(seed, 1))
	faults := fault.All()
	for range 1 + source.IntN(4) {
		mix.draws = append(mix.draws, draw{share: source.Float64(), fault: faults[source.IntN(len(faults))]})
	}
	for _, reference := range kind.Observed {
		if source.IntN(3) == 0 {
			mix.late[reference.Kind] = time.Duration(source.IntN(300)) * time.Millisecond
		}
	}
	return mix
}

// longestWithin is how long it may take until anything happens because of a step. Who owns the
// object that a step deletes depends on the steps before. So does whether the operator is
// told.
func longestWithin(pool []Step, step Step) metav1.Duration {
	longest := step.Within
	for _, other := range pool {
		if step.Delete != nil && reflect.DeepEqual(step.Delete, other.Delete) && other.Within.Duration > longest.Duration {
			longest = other.Within
		}
	}
	return longest
}

// String says what a mix does, in the words of the data.
func (m Mix) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d\n", m.Seed)
	for i, step := range m.Scenario.Steps {
		fmt.Fprintf(&out, "step %d: apply %v, delete %v, pods %v\n", i+1, step.Apply, step.Delete, step.Pods)
	}
	for _, d := range m.draws {
		fmt.Fprintf(&out, "%s at %.0f %% of the writes\n", d.fault.Name, 100*d.share)
	}
	for _, kind := range slices.Sorted(maps.Keys(m.late)) {
		fmt.Fprintf(&out, "%s is seen %v late\n", kind, m.late[kind])
	}
	return out.String()
}

// PlayMix plays a mix without its faults, and then with them.
func (b *Bench) PlayMix(t testing.TB, m Mix) error {
	t.Helper()
	reference, err := b.PlaySteps(t, m)
	if err != nil {
		return err
	}
	return b.PlayFaults(t, m, reference)
}

// PlaySteps plays a mix without its faults.
func (b *Bench) PlaySteps(t testing.TB, m Mix) (*Outcome, error) {
	t.Helper()
	reference, err := b.Play(t, m.Scenario, Trial{OwnWatches: true}, nil)
	if err != nil {
		return nil, fmt.Errorf("without a fault: %w", err)
	}
	return reference, nil
}

// PlayFaults plays a mix and compares it with what it is without faults.
func (b *Bench) PlayFaults(t testing.TB, m Mix, reference *Outcome) error {
	t.Helper()
	trial := Trial{Faults: fault.Plan{}, Idle: 500 * time.Millisecond}
	for _, d := range m.draws {
		if at := int(d.share*float64(len(reference.Writes))) + 1; at <= len(reference.Writes) {
			trial.Faults[at] = d.fault
		}
	}
	views := map[string]fault.View{}
	for kind, late := range m.late {
		views[kind] = fault.View{Late: late}
	}
	trial.CacheDelay = fault.NewCacheDelay(views)
	trial.AfterCrash = func(string) *fault.CacheDelay { return fault.NewCacheDelay(views) }
	_, err := b.Play(t, m.Scenario, trial, reference)
	return err
}

// shrinkFor bounds the search for a smaller mix.
const shrinkFor = 2 * time.Minute

// Shrink leaves out of a mix that fails whatever it fails without, and returns the
// smallest one found within shrinkFor and how that fails.
func (b *Bench) Shrink(t testing.TB, m Mix, problem error) (Mix, error) {
	t.Helper()
	end := time.Now().Add(shrinkFor)
	for smaller := true; smaller; {
		smaller = false
		for _, candidate := range m.without() {
			if time.Now().After(end) {
				return m, problem
			}
			if err := b.PlayMix(t, candidate); err != nil {
				m, problem, smaller = candidate, err, true
				break
			}
		}
	}
	return m, problem
}

// without returns every mix that has one thing less.
func (m Mix) without() []Mix {
	var all []Mix
	for i := range m.draws {
		smaller := m
		smaller.draws = slices.Delete(slices.Clone(m.draws), i, i+1)
		all = append(all, smaller)
	}
	for kind := range m.late {
		smaller := m
		smaller.late = maps.Clone(m.late)
		delete(smaller.late, kind)
		all = append(all, smaller)
	}
	for i := range m.Scenario.Steps {
		if len(m.Scenario.Steps) == 1 {
			continue
		}
		smaller := m
		smaller.Scenario.Steps = slices.Delete(slices.Clone(m.Scenario.Steps), i, i+1)
		all = append(all, smaller)
	}
	return all
}
