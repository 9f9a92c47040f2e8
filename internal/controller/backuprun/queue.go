package backuprun

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/kit/fair"
)

// firstEvery is how often a namespace without a place gets one though none is free. A place is held for up to the deadline of a
// run, and nobody may be made to wait for that by others.
const firstEvery = time.Minute

// queue is who has a place and who waits for one. It is pure. The next place goes to the namespace that has the fewest, and to
// another one round the namespaces. Two rules keep what some do from being paid for by others:
//   - A namespace takes another place only while more are free than it has: fair.Share.
//   - When none is free, a namespace that has none gets one beyond the limit, one namespace every firstEvery. So it begins within
//     firstEvery for each namespace that waits, whatever others do, and no namespace gets more than its first place like this.
type queue struct {
	// limit is how many places there are.
	limit int
	// placed are those that have a place, and held is how many each namespace has.
	placed map[types.NamespacedName]bool
	held   map[string]int
	// waiting are those that wait.
	waiting fair.Line[types.NamespacedName]
	// beyond is when the last one got a place beyond the limit.
	beyond time.Time
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, placed: map[types.NamespacedName]bool{}, held: map[string]int{}}
}

// next is who gets the next place, and how long it waits for it at most if nobody gives up a place. That is known only of a
// namespace that has none: of others it is negative.
func (q *queue) next(now time.Time) (key types.NamespacedName, after time.Duration, waits bool) {
	namespace, key, waits := q.waiting.Next(func(namespace string) int { return q.held[namespace] }, nil)
	switch held := q.held[namespace]; {
	case !waits:
		return key, -1, false
	case fair.Share(held, q.limit-len(q.placed)):
		return key, 0, true
	case held > 0:
		return key, -1, true
	default:
		return key, max(0, q.beyond.Add(firstEvery).Sub(now)), true
	}
}

// enter takes a place if this one is next, and reports whether it has one. Otherwise it waits in the queue. Who works already
// has a place, whatever the limit is.
func (q *queue) enter(key types.NamespacedName, works bool, now time.Time) bool {
	if q.placed[key] {
		return true
	}
	if works {
		q.waiting.Drop(key.Namespace, key)
		q.place(key)
		return true
	}
	if !q.waiting.Has(key.Namespace, key) {
		q.waiting.Add(key.Namespace, key)
	}
	if next, after, _ := q.next(now); next != key || after != 0 {
		return false
	}
	if len(q.placed) >= q.limit {
		q.beyond = now
	}
	q.place(q.waiting.Take(key.Namespace))
	return true
}

func (q *queue) place(key types.NamespacedName) {
	q.placed[key] = true
	q.held[key.Namespace]++
}

// leave gives up a place, or the wait for one, and reports whether there was any.
func (q *queue) leave(key types.NamespacedName) bool {
	if !q.placed[key] {
		return q.waiting.Drop(key.Namespace, key)
	}
	delete(q.placed, key)
	if q.held[key.Namespace]--; q.held[key.Namespace] == 0 {
		delete(q.held, key.Namespace)
	}
	return true
}
