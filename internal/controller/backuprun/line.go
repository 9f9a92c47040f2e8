package backuprun

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/kit/fair"
)

// firstEvery is how often a namespace without a place gets one though none is free. A place is held for up to the deadline of a
// run, and nobody may be made to wait for that by others.
const firstEvery = time.Minute

// line is who has a place and who waits for one. It is pure. The next place goes to the namespace that has the fewest, and to
// another one round the namespaces. Two rules keep what some do from being paid for by others:
//   - A namespace takes another place only while more are free than it has: fair.Share.
//   - When none is free, a namespace that has none gets one beyond the limit, one namespace every firstEvery. So it begins within
//     firstEvery for each namespace that waits, whatever others do, and no namespace gets more than its first place like this.
type line struct {
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

func newLine(limit int) *line {
	return &line{limit: limit, placed: map[types.NamespacedName]bool{}, held: map[string]int{}}
}

// next is who gets the next place, and how long it waits for it at most if nobody gives up a place. That is known only of a
// namespace that has none: of others it is negative.
func (l *line) next(now time.Time) (key types.NamespacedName, after time.Duration, waits bool) {
	namespace, key, waits := l.waiting.Next(func(namespace string) int { return l.held[namespace] }, nil)
	switch held := l.held[namespace]; {
	case !waits:
		return key, -1, false
	case fair.Share(held, l.limit-len(l.placed)):
		return key, 0, true
	case held > 0:
		return key, -1, true
	default:
		return key, max(0, l.beyond.Add(firstEvery).Sub(now)), true
	}
}

// enter takes a place if it is the turn of this one, and reports whether it has one. Otherwise it waits in line. Who works already
// has a place, whatever the limit is.
func (l *line) enter(key types.NamespacedName, works bool, now time.Time) bool {
	if l.placed[key] {
		return true
	}
	if works {
		l.waiting.Drop(key.Namespace, key)
		l.place(key)
		return true
	}
	if !l.waiting.Has(key.Namespace, key) {
		l.waiting.Add(key.Namespace, key)
	}
	if next, after, _ := l.next(now); next != key || after != 0 {
		return false
	}
	if len(l.placed) >= l.limit {
		l.beyond = now
	}
	l.place(l.waiting.Take(key.Namespace))
	return true
}

func (l *line) place(key types.NamespacedName) {
	l.placed[key] = true
	l.held[key.Namespace]++
}

// leave gives up a place, or the wait for one, and reports whether there was any.
func (l *line) leave(key types.NamespacedName) bool {
	if !l.placed[key] {
		return l.waiting.Drop(key.Namespace, key)
	}
	delete(l.placed, key)
	if l.held[key.Namespace]--; l.held[key.Namespace] == 0 {
		delete(l.held, key.Namespace)
	}
	return true
}
