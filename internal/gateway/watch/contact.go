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

	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

const (
	// patience is how long a watch may be without its stream before what it has read counts
	// as stale. The API server ends every watch from time to time, and the next one is there
	// within milliseconds.
	patience = 500 * time.Millisecond
	// firstPatience is the same for a watch that has not read anything yet.
	firstPatience = 5 * time.Second
)

// contacts knows of every watch whether it hears the API server. It is safe for concurrent
// use.
type contacts struct {
	clock clock.Clock
	// changed gets a value when a watch begins or ceases to hear.
	changed chan struct{}
	verdict atomic.Pointer[revision.View]

	mutex sync.Mutex
	all   map[*contact]bool
}

// contact is what is known of one watch. The mutex of its contacts guards it.
type contact struct {
	of   *contacts
	kind string

	// hears: the stream is open, and what it began with is on the shelf.
	hears bool
	// filling: the stream is open, and begins with everything there is.
	filling bool
	// since is from when it has not heard anything.
	since time.Time
	// known: it has heard something before.
	known bool
	// refused: the API server answers, and what it says is that nothing may be read.
	refused bool
}

func newContacts(clock clock.Clock) *contacts {
	return &contacts{clock: clock, changed: make(chan struct{}, 1), all: map[*contact]bool{}}
}

// add begins to look after a watch of that kind.
func (c *contacts) add(kind string) *contact {
	one := &contact{of: c, kind: kind, since: c.clock.Now()}
	c.change(func() { c.all[one] = true })
	return one
}

// remove ends looking after a watch.
func (c *contacts) remove(one *contact) { c.change(func() { delete(c.all, one) }) }

func (c *contacts) change(do func()) {
	c.mutex.Lock()
	do()
	c.mutex.Unlock()
	select {
	case c.changed <- struct{}{}:
	default: // somebody will look anyway
	}
}

// view is what run last found.
func (c *contacts) view() *revision.View { return c.verdict.Load() }

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

// wait waits until a watch has changed, or until a time that is not zero.
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

// look returns what is not heard of now, and when more is not if nothing changes; zero: never.
func (c *contacts) look() (view *revision.View, next time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.clock.Now()
	view = &revision.View{Current: true}
	for one := range c.all {
		if one.hears || (one.refused && !one.known) {
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

// through returns the same list and watch, and learns from it.
func (c *contact) through(from *cache.ListWatch) *cache.ListWatch {
	learning := *from
	learning.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		stream, err := from.WatchFuncWithContext(ctx, options)
		if err != nil {
			return nil, err
		}
		c.opened(options.SendInitialEvents != nil && *options.SendInitialEvents)
		return &heardStream{Interface: stream, ended: sync.OnceFunc(c.closed)}, nil
	}
	return &learning
}

// heardStream tells when a reflector is done with a stream, which it always stops.
type heardStream struct {
	apiwatch.Interface

	ended func()
}

// Stop ends the stream.
func (h *heardStream) Stop() {
	h.Interface.Stop()
	h.ended()
}

// opened notes that a stream was opened, and whether it begins with everything there is.
// Otherwise everything was read just before, or it goes on where the last one ended.
func (c *contact) opened(filling bool) {
	c.of.change(func() { c.filling, c.hears = filling, !filling; c.learn() })
}

// filled notes that everything was read.
func (c *contact) filled() {
	c.of.change(func() { c.filling, c.hears = false, c.hears || c.filling; c.learn() })
}

// learn keeps what is true for as long as the watch lives. The mutex is held.
func (c *contact) learn() { c.known = c.known || c.hears }

// closed notes that the stream has ended.
func (c *contact) closed() {
	c.of.change(func() {
		if c.hears {
			c.since = c.of.clock.Now()
		}
		c.hears, c.filling = false, false
	})
}

// failed notes why nothing could be read.
func (c *contact) failed(err error) {
	c.of.change(func() { c.refused = apierrors.IsForbidden(err) })
}
