package watch

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// grace is how long a new configuration waits for objects that the gateway may not read. The
// operator grants the right when it sees the spec, which may be a moment later than the
// gateway.
const grace = time.Second

// group is a set of watches of one kind. Each has a key: the name of the only object that it
// is about, or the namespace of its objects. Only one goroutine may call the methods.
type group[O metav1.Object, T any] struct {
	clock clock.PassiveClock
	// watch fills a store until the context ends. It does not block.
	watch func(ctx context.Context, key string, store *store[O, T], failed func(error))
	// newStore makes the store of a watch.
	newStore func() *store[O, T]
	// wake is called when a watch is refused.
	wake func()
	// patience bounds how long answered waits for a watch, whatever the reason. 0: no bound.
	patience time.Duration

	watched map[string]*watched[O, T]
}

// watched is one watch of a group.
type watched[O metav1.Object, T any] struct {
	store   *store[O, T]
	stop    context.CancelFunc
	since   time.Time
	refused atomic.Bool
}

// want has exactly these watches.
func (g *group[O, T]) want(ctx context.Context, keys map[string]bool) {
	for key, w := range g.watched {
		if !keys[key] {
			w.stop()
			delete(g.watched, key)
		}
	}
	for key := range keys {
		if g.watched[key] == nil {
			g.start(ctx, key)
		}
	}
}

func (g *group[O, T]) start(ctx context.Context, key string) {
	ctx, stop := context.WithCancel(ctx)
	w := &watched[O, T]{store: g.newStore(), stop: stop, since: g.clock.Now()}
	if g.watched == nil {
		g.watched = map[string]*watched[O, T]{}
	}
	g.watched[key] = w
	g.watch(ctx, key, w.store, func(err error) {
		if apierrors.IsForbidden(err) && !w.refused.Swap(true) {
			g.wake()
		}
	})
}

// answered reports whether each of these watches was either read or refused. If not, end is
// when the waiting ends. It is zero if that is not known yet.
func (g *group[O, T]) answered(keys map[string]bool) (complete bool, end time.Time) {
	complete = true
	for key := range keys {
		w := g.watched[key]
		if w.store.full() {
			continue
		}
		until := g.waits(w)
		if !until.IsZero() && !g.clock.Now().Before(until) {
			continue
		}
		complete = false
		end = earliest(until, end)
	}
	return complete, end
}

// waits returns until when a watch is waited for. It is zero if that is not known yet.
func (g *group[O, T]) waits(w *watched[O, T]) time.Time {
	switch {
	case w.refused.Load():
		return w.since.Add(grace)
	case g.patience > 0:
		return w.since.Add(g.patience)
	default:
		return time.Time{}
	}
}

// full reports whether every watch has read its objects.
func (g *group[O, T]) full() bool {
	for _, w := range g.watched {
		if !w.store.full() {
			return false
		}
	}
	return true
}

// each calls f for each object of these watches, in any order. f must not block.
func (g *group[O, T]) each(keys map[string]bool, f func(name types.NamespacedName, value T)) {
	for key := range keys {
		if w := g.watched[key]; w != nil {
			w.store.each(f)
		}
	}
}
