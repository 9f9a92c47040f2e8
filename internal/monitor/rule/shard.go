package rule

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// shard is what is remembered of the objects of one kind.
type shard struct {
	mutex sync.Mutex
	// states are by rule, and then by object.
	states map[types.UID]map[types.UID]*state
	timers timers
	// failing are the objects for which an expression of a rule fails.
	failing map[types.UID]map[types.UID]failure
	// lastFired is when a rule last raised an alarm.
	lastFired map[types.UID]time.Time
	// clock is the last time that Tick was told.
	clock time.Time
	// dropped reports whether the engine has forgotten it: another one takes its place.
	dropped bool
}

// isEmpty reports whether nothing is remembered.
func (sh *shard) isEmpty() bool {
	return len(sh.states) == 0 && len(sh.failing) == 0 && len(sh.lastFired) == 0
}

type failure struct {
	object  Object
	message string
}

// maxFailing is how many objects are remembered for which an expression of a rule fails.
const maxFailing = 1000

// put remembers a state, or forgets it if there is nothing to remember.
func (sh *shard) put(rule types.UID, s *state) {
	of := sh.states[rule]
	if s.isEmpty() {
		delete(of, s.Object.UID)
		if len(of) == 0 {
			delete(sh.states, rule)
		}
		return
	}
	if of == nil {
		of = map[types.UID]*state{}
		sh.states[rule] = of
	}
	was := of[s.Object.UID]
	of[s.Object.UID] = s
	if !s.due.IsZero() && (was == nil || !was.due.Equal(s.due)) {
		heap.Push(&sh.timers, timer{s.due, rule, s.Object.UID})
	}
}

// isCurrent reports whether a timer still counts.
func (sh *shard) isCurrent(t timer) bool {
	s := sh.states[t.rule][t.object]
	return s != nil && s.due.Equal(t.at)
}

// next is when the first timer is due.
func (sh *shard) next() time.Time {
	for len(sh.timers) > 0 {
		if sh.isCurrent(sh.timers[0]) {
			return sh.timers[0].at
		}
		heap.Pop(&sh.timers)
	}
	return time.Time{}
}

// dueAt takes out timers that are due. If the clock was set back, all states are due once: what they count from may lie in the
// future.
func (sh *shard) dueAt(now time.Time, limit int) (due []timer) {
	if now.Before(sh.clock.Add(-time.Second)) {
		sh.timers = nil
		for rule, states := range sh.states {
			for object, s := range states {
				if !s.due.IsZero() {
					s.due = now
					heap.Push(&sh.timers, timer{now, rule, object})
				}
			}
		}
	}
	sh.clock = now
	for len(due) < limit {
		first := sh.next()
		if first.IsZero() || first.After(now) {
			return due
		}
		t := heap.Pop(&sh.timers).(timer)
		sh.states[t.rule][t.object].due = time.Time{} // it has no timer now
		due = append(due, t)
	}
	return due
}

// fails notes that an expression fails for an object, or that it does not any more. It reports whether that is new.
func (sh *shard) fails(rule types.UID, object Object, err error) bool {
	was, known := sh.failing[rule][object.UID]
	if err == nil {
		delete(sh.failing[rule], object.UID)
		if len(sh.failing[rule]) == 0 {
			delete(sh.failing, rule)
		}
		return known
	}
	of := sh.failing[rule]
	if of == nil {
		of = map[types.UID]failure{}
		sh.failing[rule] = of
	}
	now := failure{object, Text(err.Error())}
	if known || len(of) < maxFailing {
		of[object.UID] = now
	}
	return !known && len(of) <= maxFailing || known && was != now
}
