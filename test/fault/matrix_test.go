//go:build faulttest

package fault_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// cell is one case of the matrix: a trial, its column in the table and its name in the
// column.
type cell struct {
	column, name string
	scenario.Trial
}

// TestMatrix plays every scenario with everything that may go wrong in it, each alone.
func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		for _, s := range kind.Scenarios {
			t.Run(s.Kind+"/"+s.Name, func(t *testing.T) {
				t.Parallel()
				reference := reference(t, s)
				t.Logf("%d writes: %s", len(reference.Writes), scenario.Writes(reference.Writes))
				for _, c := range cells(kind, s, reference) {
					t.Run(c.column+"/"+c.name, func(t *testing.T) {
						t.Parallel()
						t.Cleanup(func() { table.Add(s.Kind+"/"+s.Name, c.column, !t.Failed()) })
						outcome := play(t, s, c.Trial, reference)
						if len(c.Faults) == 0 || t.Failed() {
							return
						}
						// Fewer writes may do, when several states of a rollout are seen at once.
						table.Struck(t.Name(), outcome.Struck > 0)
						if outcome.Struck == 0 && len(outcome.Writes) >= slices.Min(slices.Collect(maps.Keys(c.Faults))) {
							t.Errorf("the fault did not happen in: %s", scenario.Writes(outcome.Writes))
						}
					})
				}
			})
		}
	}
}

// play plays a scenario and fails the test when something is not as it is without what
// goes wrong. A machine that is busy enough can make any case late, so one that fails is
// played again, unless no lateness explains it, and what went wrong the first time is
// told: the table names the case, and mayBePlayedAgain bounds how many there are.
func play(t *testing.T, s scenario.Scenario, trial scenario.Trial, reference *scenario.Outcome) *scenario.Outcome {
	t.Helper()
	outcome, err := bench.Play(t, s, trial, reference)
	if err == nil {
		table.Played(t.Name(), nil)
		return outcome
	}
	if errors.As(err, new(scenario.Unsafe)) {
		t.Error(err)
		return outcome
	}
	t.Logf("played again, because: %v", err)
	// What made it late mostly lasts: it takes longer to be at rest, too, and to be seen.
	trial.Idle += restlessness
	trial.Live = true
	again, secondErr := bench.Play(t, s, trial, reference)
	if secondErr != nil {
		t.Errorf("the first time: %v\nand again: %v", err, secondErr)
		return again
	}
	table.Played(t.Name(), err)
	return again
}

// restlessness is how much longer a step has to be at rest when it is played again.
const restlessness = 2 * time.Second

// references are the runs that others are compared with, by scenario.
var references struct {
	sync.Mutex
	runs map[string]func() (*scenario.Outcome, error)
}

// reference plays a scenario in which nothing goes wrong, once for all tests.
func reference(t *testing.T, s scenario.Scenario) *scenario.Outcome {
	t.Helper()
	references.Lock()
	if references.runs == nil {
		references.runs = map[string]func() (*scenario.Outcome, error){}
	}
	name := s.Kind + "/" + s.Name
	if references.runs[name] == nil {
		references.runs[name] = sync.OnceValues(func() (*scenario.Outcome, error) {
			return bench.Play(t, s, scenario.Trial{Lens: fault.NewRecorder()}, nil)
		})
	}
	run := references.runs[name]
	references.Unlock()
	outcome, err := run()
	if err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	return outcome
}

// cells enumerates everything that may go wrong in a scenario, but in the steps with
// which an earlier scenario begins too.
func cells(kind scenario.Kind, s scenario.Scenario, reference *scenario.Outcome) []cell {
	all := []cell{
		{column: "F0 nothing", name: "again"},
		{column: "F10 two leaders", name: "all along", Trial: scenario.Trial{Operators: 2}},
	}
	shared := kind.SharedSteps(s)
	for i, step := range s.Steps[shared:] {
		all = append(all, stepCrashes(shared+i+1, step)...)
	}
	for at := range reference.Writes {
		if reference.Steps[at] < shared {
			continue
		}
		all = append(all, writeFaults(at+1)...)
		all = append(all, staleRestarts(at+1, stale(reference, at))...)
		all = append(all, revocation(at+1))
	}
	all = append(all, views(reference)...)
	return append(all, orders(reference)...)
}

// writeFaults are F1 to F3: every fault at a write.
func writeFaults(at int) []cell {
	var all []cell
	for _, f := range fault.All() {
		column, variant, _ := strings.Cut(f.Name, " x")
		all = append(all, cell{
			column: column, name: strings.TrimSuffix(fmt.Sprintf("write %d x%s", at, variant), " x"),
			Trial: scenario.Trial{Faults: fault.Plan{at: f}},
		})
	}
	return all
}

// staleFor is how long a stale cache stays behind: longer than a new operator needs for
// what it does first.
const staleFor = 700 * time.Millisecond

// stale are the kinds that may be out of date after a write: those of which something
// has changed since the beginning of its step.
func stale(reference *scenario.Outcome, at int) []string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(reference.Seen)) {
		if reference.Moved[at][kind] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// staleRestarts are F4: the operator crashes after a write, and the next one sees one
// kind as it was at the beginning of the step, while all others are fresh; or it sees
// everything so, from an API server that lags.
func staleRestarts(at int, kinds []string) []cell {
	var all []cell
	for _, kind := range kinds {
		all = append(all, staleRestart(at, kind, func(past fault.View) *fault.Lens {
			return fault.NewLens(map[string]fault.View{kind: past})
		}))
	}
	if len(kinds) > 1 {
		all = append(all, staleRestart(at, "everything", fault.NewLensForAll))
	}
	return all
}

// stepCrashes are F1 and F4 between writes: the operator crashes right after somebody
// did something, and the next one sees that, or not for a while.
func stepCrashes(number int, step scenario.Step) []cell {
	name := fmt.Sprintf("step %d", number)
	all := []cell{{column: "F1 crash", name: name, Trial: scenario.Trial{CrashAtStep: number}}}
	kind := step.Of()
	if kind == "" {
		return all
	}
	return append(all, cell{
		column: "F4 stale restart", name: name + ", stale " + kind,
		Trial: scenario.Trial{CrashAtStep: number, Idle: staleFor, AfterCrash: func(version string) *fault.Lens {
			return fault.NewLens(map[string]fault.View{kind: {Past: version, PastFor: staleFor}})
		}},
	})
}

func staleRestart(at int, what string, lens func(fault.View) *fault.Lens) cell {
	return cell{
		column: "F4 stale restart", name: fmt.Sprintf("write %d, stale %s", at, what),
		Trial: scenario.Trial{
			Faults: fault.Plan{at: {Name: "crash", Crash: true}}, Idle: staleFor,
			AfterCrash: func(version string) *fault.Lens { return lens(fault.View{Past: version, PastFor: staleFor}) },
		},
	}
}

// unsaid is how long what is seen at last may not show: a status waits for a second
// for what a pod says.
const unsaid = 1200 * time.Millisecond

// views are F5 and F6: each kind is seen late, and with what cancels out left out.
func views(reference *scenario.Outcome) []cell {
	var all []cell
	for _, kind := range slices.Sorted(maps.Keys(reference.Seen)) {
		for _, late := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second} {
			all = append(all, cell{column: "F5 seen late", name: fmt.Sprintf("%s by %v", kind, late), Trial: scenario.Trial{
				Lens: fault.NewLens(map[string]fault.View{kind: {Late: late}}), Idle: unsaid,
			}})
		}
		const window = 300 * time.Millisecond
		all = append(all, cell{column: "F6 events dropped", name: kind, Trial: scenario.Trial{
			Lens: fault.NewLens(map[string]fault.View{kind: {Squash: window}}), Idle: 2 * window,
		}})
	}
	return all
}

// orders are F7: what happens to the four kinds of which most is seen is shown in every
// order.
func orders(reference *scenario.Outcome) []cell {
	busiest := slices.SortedFunc(maps.Keys(reference.Seen), func(a, b string) int {
		if d := len(reference.Seen[b]) - len(reference.Seen[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	const apart = 120 * time.Millisecond
	var all []cell
	for _, order := range permutations(busiest[:min(4, len(busiest))]) {
		seen := map[string]fault.View{}
		for i, kind := range order {
			seen[kind] = fault.View{Late: time.Duration(i) * apart}
		}
		all = append(all, cell{column: "F7 reordered", name: strings.Join(order, ", "), Trial: scenario.Trial{
			Lens: fault.NewLens(seen), Idle: 4 * apart,
		}})
	}
	return all
}

func permutations(of []string) [][]string {
	if len(of) < 2 {
		return [][]string{of}
	}
	var all [][]string
	for i, first := range of {
		for _, rest := range permutations(slices.Concat(of[:i], of[i+1:])) {
			all = append(all, append([]string{first}, rest...))
		}
	}
	return all
}
