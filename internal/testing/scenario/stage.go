package scenario

import (
	"fmt"
	"slices"

	"github.com/slipway-dev/slipway/internal/testing/fault"
)

// Stage returns the first of the steps that follow each other at once, up to the i-th: of
// those after which everything is at steady state together. Steps are counted from 0.
func (s Scenario) Stage(i int) int {
	for i > 0 && !s.Steps[i-1].settles() {
		i--
	}
	return i
}

// InjectedFault is what goes wrong in a stage.
type InjectedFault struct {
	// Faults are injected at the operator's writes, counted from the beginning of the stage.
	Faults fault.Plan
	// AfterCrash is how an operator sees the cluster that is started after a crash, as for
	// a Trial.
	AfterCrash func(version string) *fault.CacheDelay
}

// injectedRefusals is the value of refusals for a stage in which something goes wrong. Such a
// stage cannot use what is left over from others, and the operator tries to report what
// changes meanwhile as well.
const injectedRefusals = 2 * refusals

// stage is a stage that has begun: its first step, and how many writes, and injected faults,
// there were before it.
type stage struct{ first, writes, injected int }

// begins begins a stage.
func (r *run) begins(first int) {
	r.stages = append(r.stages, stage{first, r.gate.Written(), r.gate.Injected()})
	if len(r.trial.Injected) == 0 {
		return
	}
	injected := r.trial.Injected[first]
	r.gate.Begin(injected.Faults)
	r.trial.AfterCrash = injected.AfterCrash
}

// restsAfter waits after the i-th step until nothing that went wrong before it can lead to a
// write any more. After the last step it returns at once: the end of the run waits for the same.
func (r *run) restsAfter(i int) error {
	_, injects := r.trial.Injected[r.scenario.Stage(i)]
	if !injects || !r.scenario.Steps[i].settles() || i == len(r.scenario.Steps)-1 {
		return nil
	}
	r.place.Leave()
	return r.staysQuiet()
}

// injectedIn returns how many faults were injected in each stage.
func (r *run) injectedIn() map[int]int {
	injected, until := map[int]int{}, r.gate.Injected()
	for _, s := range slices.Backward(r.stages) {
		injected[s.first], until = until-s.injected, s.injected
	}
	return injected
}

// checkWrites finds objects that were written too often: in a stage, if each stage has a fault
// of its own, otherwise in the whole run.
func (r *run) checkWrites(reference, got *Outcome) []error {
	if len(r.trial.Injected) == 0 {
		// Each of several operators writes what it finds to be done.
		expected := slices.Repeat(reference.Writes, max(1, r.trial.Operators))
		return checkWrites(expected, got.Writes, allowance*max(1, got.InjectedInAll()), refusals*len(got.States))
	}
	var problems []error
	end := len(got.Writes)
	for _, s := range slices.Backward(r.stages) {
		var expected []fault.Write
		for i, w := range reference.Writes {
			if r.scenario.Stage(reference.Steps[i]) == s.first {
				expected = append(expected, w)
			}
		}
		for _, err := range checkWrites(expected, got.Writes[s.writes:end], allowance*max(1, got.Injected[s.first]), injectedRefusals) {
			problems = append(problems, fmt.Errorf("from step %d: %w", s.first+1, err))
		}
		end = s.writes
	}
	return problems
}
