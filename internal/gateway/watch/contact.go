package watch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

const (
	// patience is how long a watch may be without an open stream before its data counts as
	// stale. The API server ends every watch from time to time. The next one is usually
	// open within milliseconds.
	patience = 500 * time.Millisecond
	// firstPatience is the same for a watch that has not read anything yet.
	firstPatience = 5 * time.Second
)

// contacts records for each watch whether it receives changes from the API server. It is
// safe for concurrent use.
type contacts struct {
	clock clock.Clock
	// changed gets a value when the state of a watch changes.
	changed chan struct{}
	verdict atomic.Pointer[document.View]

	mutex sync.Mutex
	all   map[*contact]bool
}

// contact is the state of one watch. The mutex of its contacts guards it.
type contact struct {
	of   *contacts
	kind string

	// synced: the stream is open, and its initial events are in the store.
	synced bool
	// filling: the stream is open, and it begins with all existing objects.
	filling bool
	// since is the time since which it is not synced.
	since time.Time
	// known: it was synced before.
	known bool
	// refused: the API server answers that the gateway may not read the objects.
	refused bool
	// missing: the cluster does not have the kind.
	missing bool
}

func newContacts(clock clock.Clock) *contacts {
	return &contacts{clock: clock, changed: make(chan struct{}, 1), all: map[*contact]bool{}}
}

// add starts to record the state of a watch of that kind.
func (c *contacts) add(kind string) *contact {
	one := &contact{of: c, kind: kind, since: c.clock.Now()}
	c.change(func() { c.all[one] = true })
	return one
}

// remove ends the recording for a watch.
func (c *contacts) remove(one *contact) { c.change(func() { delete(c.all, one) }) }

func (c *contacts) change(do func()) {
	c.mutex.Lock()
	do()
	c.mutex.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // a signal waits already
	}
}

// view returns the last result of run.
func (c *contacts) view() *document.View { return c.verdict.Load() }

// run calls wake whenever the view has changed, until the context ends.
func (c *contacts) run(ctx context.Context, wake func()) {
	for {
		found, next := c.look()
		if !found.Same(c.verdict.Swap(found)) {
			wake()
		}
		if !c.wait(ctx, next) {
			return
		}
	}
}

// wait waits until the state of a watch has changed, or until next if that is not zero.
func (c *contacts) wait(ctx context.Context, next time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := c.clock.NewTimer(next.Sub(c.clock.Now()))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.changed:
	case <-due:
	}
	return true
}

// look returns which kinds are stale now. next is when that changes if no event comes. It
// is zero if there is no such time.
func (c *contacts) look() (view *document.View, next time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.clock.Now()
	view = &document.View{Current: true}
	for one := range c.all {
		if one.synced || one.missing || (one.refused && !one.known) {
			continue
		}
		limit := patience
		if !one.known {
			limit = firstPatience
		}
		if due := one.since.Add(limit); due.After(now) {
			next = earliest(due, next)
			continue
		}
		view.Current = false
		view.Since = earliest(view.Since, one.since)
		if !slices.Contains(view.Of, one.kind) {
			view.Of = append(view.Of, one.kind)
		}
	}
	if !view.Current {
		view.Since = view.Since.UTC().Truncate(time.Millisecond)
		slices.Sort(view.Of)
	}
	return view, next
}

// through returns the same list and watch, and records the state of its streams.
func (c *contact) through(from *cache.ListWatch) *cache.ListWatch {
	learning := *from
	learning.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		stream, err := from.WatchFuncWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		c.opened(options.SendInitialEvents != nil && *options.SendInitialEvents)
		return &watchedStream{Interface: stream, ended: sync.OnceFunc(c.closed)}, nil
	}
	return &learning
}

// watchedStream reports when a reflector has finished with a stream. A reflector always stops
// its streams.
type watchedStream struct {
	apiwatch.Interface

	ended func()
}

// Stop stops the stream.
func (h *watchedStream) Stop() {
	h.Interface.Stop()
	h.ended()
}

// opened records that a stream was opened. filling is set if the stream begins with all
// existing objects. Otherwise they were read just before, or the stream continues the last
// one.
func (c *contact) opened(filling bool) {
	c.of.change(func() { c.filling, c.synced, c.missing = filling, !filling, false; c.learn() })
}

// filled records that all existing objects were read.
func (c *contact) filled() {
	c.of.change(func() { c.filling, c.synced = false, c.synced || c.filling; c.learn() })
}

// learn updates known. The caller holds the mutex.
func (c *contact) learn() { c.known = c.known || c.synced }

// closed records that the stream has ended.
func (c *contact) closed() {
	c.of.change(func() {
		if c.synced {
			c.since = c.of.clock.Now()
		}
		c.synced, c.filling = false, false
	})
}

// failed records why nothing could be read.
func (c *contact) failed(err error) {
	c.of.change(func() { c.refused, c.missing = apierrors.IsForbidden(err), false })
}

// absent records that the cluster does not have the kind.
func (c *contact) absent() {
	c.of.change(func() { c.refused, c.missing = false, true })
}
