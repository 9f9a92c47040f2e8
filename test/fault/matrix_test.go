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

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// cell is a run of the matrix: its column in the table, its name in the column, and what
// goes wrong, all along or at single writes.
type cell struct {
	column, name string
	scenario.Trial
	injections []injection
	// spares are played in turn where nothing was injected, in a sample: a fault without a case would be no sample.
	spares []cell
}

// injection is a case of the matrix in which something goes wrong at one write.
type injection struct {
	// column is that of the table, and what says what else it is about.
	column, what string
	// write is the number of the write in the reference, from 1, stage the first step of the
	// stage that it is in, and number that of the write in there, from 1.
	write, stage, number int
	fault                fault.Fault
	afterCrash           func(version string) *fault.CacheDelay
	// trial is what holds all along.
	trial scenario.Trial
}

// TestMatrix plays every scenario with everything that may go wrong at a write or a step, one
// at a time. After each fault everything has to reach the steady state that it has without the
// fault, before a run has another.
func TestMatrix(t *testing.T) {
	t.Parallel()
	everyScenario(t, func(t *testing.T, kind scenario.Kind, s scenario.Scenario, all func()) {
		// All scenarios queue up together: the slowest would be played last otherwise, and
		// alone, because its reference takes longest.
		all()
		reference := reference(t, s)
		t.Logf("%d writes: %s", len(reference.Writes), scenario.Writes(reference.Writes))
		playAll(t, s, reference, cells(kind, s, reference))
	})
}

// playAll plays the runs of a scenario, each as a test.
func playAll(t *testing.T, s scenario.Scenario, reference *scenario.Outcome, cells []cell) {
	t.Helper()
	for _, c := range cells {
		t.Run(c.column+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				for range max(1, len(c.injections)) {
					table.Add(s.Kind+"/"+s.Name, c.column, !t.Failed())
				}
			})
			outcome := play(t, bench, s, c.Trial, reference)
			for _, spare := range c.spares {
				if t.Failed() || haveInjected(t, s, c.injections, outcome) {
					break
				}
				c = spare
				outcome = play(t, bench, s, c.Trial, reference)
			}
			if t.Failed() {
				return
			}
			haveInjected(t, s, c.injections, outcome)
			for _, wanted := range c.injections {
				table.Injected(fmt.Sprintf("%s: write %d", t.Name(), wanted.write), outcome.Injected[wanted.stage] > 0)
			}
		})
	}
}

// haveInjected reports whether all faults were injected, and fails the test if one was not
// although the run made that write. A run may make fewer writes, because several states of a
// rollout may be seen at once.
func haveInjected(t *testing.T, s scenario.Scenario, injections []injection, outcome *scenario.Outcome) bool {
	t.Helper()
	all := true
	for _, wanted := range injections {
		injected, begun := outcome.Injected[wanted.stage]
		all = all && injected > 0
		writes := 0
		for _, step := range outcome.Steps {
			if s.Stage(step) == wanted.stage {
				writes++
			}
		}
		if !begun || injected == 0 && writes >= wanted.number {
			t.Errorf("nothing happened to write %d from step %d of: %s", wanted.number, wanted.stage+1, scenario.Writes(outcome.Writes))
		}
	}
	return all
}

// play plays a scenario, and fails the test when something is not as it is without the fault.
// A busy machine can make any case late, so one that fails is played again, unless lateness
// cannot explain it. What went wrong the first time is printed: the table names the run, and
// mayBePlayedAgain bounds how many there are.
func play(t *testing.T, on *scenario.Bench, s scenario.Scenario, trial scenario.Trial, reference *scenario.Outcome) *scenario.Outcome {
	t.Helper()
	outcome, err := on.Play(t, s, trial, reference)
	if err == nil {
		table.Played(t.Name(), nil)
		return outcome
	}
	if errors.As(err, new(scenario.Unsafe)) || errors.As(err, new(scenario.Late)) {
		t.Error(err)
		return outcome
	}
	t.Logf("played again, because: %v", err)
	// What made it late mostly lasts: the second time, steady state comes later too, and so
	// does the proof of it.
	trial.Idle += restlessness
	trial.Live = true
	again, secondErr := on.Play(t, s, trial, reference)
	if secondErr != nil {
		t.Errorf("the first time: %v\nand again: %v", err, secondErr)
		return again
	}
	table.Played(t.Name(), err)
	return again
}

// restlessness is how much longer a step has to be at steady state when it is played again.
const restlessness = 2 * time.Second

// references are the runs that others are compared with, by scenario.
var references struct {
	sync.Mutex
	runs map[string]func() (*scenario.Outcome, error)
}

// reference plays a scenario in which nothing goes wrong, once for all tests.
func reference(t *testing.T, s scenario.Scenario) *scenario.Outcome {
	t.Helper()
	outcome, err := referenceOf(t, s)()
	if err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	return outcome
}

// referenceOf returns what plays a scenario in which nothing goes wrong, once for all
// tests.
func referenceOf(t *testing.T, s scenario.Scenario) func() (*scenario.Outcome, error) {
	t.Helper()
	references.Lock()
	defer references.Unlock()
	if references.runs == nil {
		references.runs = map[string]func() (*scenario.Outcome, error){}
	}
	name := s.Kind + "/" + s.Name
	if references.runs[name] == nil {
		references.runs[name] = sync.OnceValues(func() (*scenario.Outcome, error) {
			trial := scenario.Trial{CacheDelay: fault.NewTimedCacheDelay(), OwnWatches: true}
			outcome, err := bench.Play(t, s, trial, nil)
			if err != nil {
				t.Logf("played again, because: %v", err)
				trial.CacheDelay = fault.NewTimedCacheDelay()
				outcome, err = bench.Play(t, s, trial, nil)
			}
			return outcome, err
		})
	}
	return references.runs[name]
}

// everyScenario runs a test for each scenario of each kind, at the same time, and begins to
// play their references. all waits for those of all.
func everyScenario(t *testing.T, do func(t *testing.T, kind scenario.Kind, s scenario.Scenario, all func())) {
	t.Helper()
	someScenarios(t, func(kind scenario.Kind) []scenario.Scenario { return kind.Scenarios }, do)
}

// someScenarios is everyScenario for those that of chooses.
func someScenarios(t *testing.T, of func(scenario.Kind) []scenario.Scenario, do func(t *testing.T, kind scenario.Kind, s scenario.Scenario, all func())) {
	t.Helper()
	var begun []func() (*scenario.Outcome, error)
	all := func() {
		for _, run := range begun {
			_, _ = run() // who needs it asks again
		}
	}
	for _, kind := range kinds {
		for _, s := range of(kind) {
			t.Run(s.Kind+"/"+s.Name, func(t *testing.T) {
				run := referenceOf(t, s)
				begun = append(begun, run)
				go func() { _, _ = run() }() // who needs it asks again
				t.Parallel()
				do(t, kind, s, all)
			})
		}
	}
}

// cells enumerates everything that may go wrong at a write or a step of a scenario, but in
// the steps with which an earlier scenario begins too.
func cells(kind scenario.Kind, s scenario.Scenario, reference *scenario.Outcome) []cell {
	all := []cell{
		{column: "F0 nothing", name: "again"},
		{column: "F10 two leaders", name: "all along", Trial: scenario.Trial{Operators: 2}},
	}
	shared := kind.SharedSteps(s)
	for i, step := range s.Steps[shared:] {
		all = append(all, stepCrashes(shared+i+1, step)...)
	}
	var injections []injection
	written := map[int]int{} // so far in each stage
	for i, step := range reference.Steps {
		stage := s.Stage(step)
		written[stage]++
		if step < shared {
			continue
		}
		at := injection{write: i + 1, stage: stage, number: written[stage]}
		injections = append(injections, at.withFaults()...)
		injections = append(injections, at.withStaleRestarts(stale(reference, i))...)
		injections = append(injections, at.withoutRights())
	}
	if *sample == "" {
		return append(all, runs(injections)...)
	}
	for _, each := range injections {
		all = append(all, runs([]injection{each})...)
	}
	return oneOfHalf(s, all)
}

// runs are as few as have at most one injected fault in a stage, and those of one run are all of
// the same.
func runs(injections []injection) []cell {
	var all []cell
	for _, next := range injections {
		room := slices.IndexFunc(all, func(c cell) bool {
			_, taken := c.Injected[next.stage]
			return !taken && c.injections[0].column == next.column && c.injections[0].what == next.what
		})
		if room < 0 {
			room = len(all)
			c := cell{column: next.column, Trial: next.trial}
			c.Injected = map[int]scenario.InjectedFault{}
			all = append(all, c)
		}
		c := &all[room]
		c.injections = append(c.injections, next)
		c.Injected[next.stage] = scenario.InjectedFault{Faults: fault.Plan{next.number: next.fault}, AfterCrash: next.afterCrash}
	}
	for i := range all {
		var writes []string
		for _, each := range all[i].injections {
			writes = append(writes, fmt.Sprint(each.write))
		}
		all[i].name = strings.TrimSpace("write " + strings.Join(writes, ",") + " " + all[i].injections[0].what)
	}
	return all
}

func TestARunHasOneInjectedFaultInAStage(t *testing.T) {
	injections := []injection{
		{column: "F1", write: 1, stage: 0, number: 1},
		{column: "F2", write: 1, stage: 0, number: 1},
		{column: "F1", write: 2, stage: 0, number: 2},
		{column: "F1", write: 3, stage: 1, number: 1},
		{column: "F1", what: "twice", write: 3, stage: 1, number: 1},
	}
	// The numbers of the writes in each stage, by its first step.
	type stages map[int][]int
	got := map[string]stages{}
	for _, c := range runs(injections) {
		in := stages{}
		for stage, injected := range c.Injected {
			in[stage] = slices.Collect(maps.Keys(injected.Faults))
		}
		got[c.column+"/"+c.name] = in
	}
	want := map[string]stages{"F1/write 1,3": {0: {1}, 1: {1}}, "F2/write 1": {0: {1}}, "F1/write 2": {0: {2}}, "F1/write 3 twice": {1: {1}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs and their stages (-want +got):\n%s", diff)
	}
}

// withFaults are F1 to F3: every fault at a write.
func (at injection) withFaults() []injection {
	var all []injection
	for _, f := range fault.All() {
		column, times, again := strings.Cut(f.Name, " x")
		at.column, at.fault, at.what = column, f, ""
		if again {
			at.what = "x" + times
		}
		all = append(all, at)
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

// withStaleRestarts are F4: the operator crashes after a write, and the next one sees one
// kind as it was at the beginning of the step, while all others are fresh; or it sees
// everything so, from an API server with a stale cache.
func (at injection) withStaleRestarts(kinds []string) []injection {
	var all []injection
	for _, kind := range kinds {
		all = append(all, at.withStaleRestart(kind, func(past fault.View) *fault.CacheDelay {
			return fault.NewCacheDelay(map[string]fault.View{kind: past})
		}))
	}
	if len(kinds) > 1 {
		all = append(all, at.withStaleRestart("everything", fault.NewCacheDelayForAll))
	}
	return all
}

func (at injection) withStaleRestart(what string, delay func(fault.View) *fault.CacheDelay) injection {
	at.column, at.what = "F4 stale restart", "stale "+what
	at.fault = fault.Fault{Name: "crash", Crash: true}
	at.afterCrash = func(version string) *fault.CacheDelay { return delay(fault.View{Past: version, PastFor: staleFor}) }
	at.trial = scenario.Trial{Idle: staleFor}
	return at
}

// stepCrashes are F1 and F4 between writes: the operator crashes right after somebody
// did something, and the next one sees that, or not for a while.
func stepCrashes(number int, step scenario.Step) []cell {
	name := fmt.Sprintf("step %d", number)
	all := []cell{{column: "F1 crash", name: name, Trial: scenario.Trial{CrashAtStep: number}}}
	kind := step.Kind()
	if kind == "" {
		return all
	}
	return append(all, cell{
		column: "F4 stale restart", name: name + ", stale " + kind,
		Trial: scenario.Trial{CrashAtStep: number, Idle: staleFor, AfterCrash: func(version string) *fault.CacheDelay {
			return fault.NewCacheDelay(map[string]fault.View{kind: {Past: version, PastFor: staleFor}})
		}},
	})
}
