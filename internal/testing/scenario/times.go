package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Times are those that the operator takes, in all runs of several benches.
type Times struct {
	mu sync.Mutex
	// steps are those of the runs with a reference, changes those of single fields, and new
	// objects.
	steps, changes []stepTime
}

// Changed notes how long it took until everything was as it should be after a field was
// changed, or an object made, in cases that do so one after the other.
func (t *Times) Changed(name string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes = append(t.changes, stepTime{name, took, took})
}

func (t *Times) settled(s stepTime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, s)
}

// String says how long steps took, from what was done, or from the start of the new
// operator after a crash, to the last thing that happened.
func (t *Times) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := fmt.Sprintf("%d steps came to rest after %s.", len(t.steps), paces(t.steps))
	if len(t.changes) > 0 {
		said += fmt.Sprintf("\n%d changes of single fields and new objects (F8, F9) came to rest after %s; the slowest: %s.",
			len(t.changes), distribution(t.changes, func(s stepTime) time.Duration { return s.own }), slowestOf(t.changes))
	}
	return said
}

// stepTime is what a step took.
type stepTime struct {
	name     string
	own, all time.Duration
}

// slowest is how many of the slowest steps are named.
const slowest = 5

// paces says how long steps took.
func paces(steps []stepTime) string {
	own := distribution(steps, func(s stepTime) time.Duration { return s.own })
	all := distribution(steps, func(s stepTime) time.Duration { return s.all })
	return fmt.Sprintf(
		"%s of the operator's own time, %s with the time for which it could not know or act; the slowest: %s", own, all, slowestOf(steps),
	)
}

// slowestOf names the slowest steps, with their own time of all.
func slowestOf(steps []stepTime) string {
	bySlowness := slices.SortedFunc(slices.Values(steps), func(a, b stepTime) int { return cmp.Compare(b.own, a.own) })
	var names []string
	for _, s := range bySlowness[:min(slowest, len(bySlowness))] {
		names = append(names, fmt.Sprintf("%s (%v of %v)", s.name, s.own.Round(time.Millisecond), s.all.Round(time.Millisecond)))
	}
	return strings.Join(names, ", ")
}

func distribution(steps []stepTime, of func(stepTime) time.Duration) string {
	if len(steps) == 0 {
		return "no time"
	}
	var sorted []time.Duration
	for _, s := range steps {
		sorted = append(sorted, of(s))
	}
	slices.Sort(sorted)
	share := func(percent int) time.Duration {
		return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
	}
	return fmt.Sprintf("%v (median), %v (99 %%), %v (worst)", share(50), share(99), share(100))
}
