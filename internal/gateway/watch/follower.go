package watch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

const (
	// pauseFactor is how much longer than making a table the pause after it is. So an endless
	// burst of changes uses at most a third of a core. maxPause bounds the pause.
	pauseFactor = 2
	maxPause    = 300 * time.Millisecond
	// maxSleep bounds a sleep, because the clock may be adjusted meanwhile.
	maxSleep = time.Hour
	// absentPause is how long a kind that the cluster does not have is not looked for.
	absentPause = 10 * time.Second
)

// follower reads from the API server in the background, and has its loop look at the current
// state whenever that has changed.
type follower struct {
	clock clock.Clock
	log   *slog.Logger
	board *document.Board
	// contacts tells whether the stores are up to date.
	contacts  *contacts
	woken     chan struct{}
	following sync.WaitGroup

	told     document.Document // belongs to the goroutine of the loop
	survival survival
}

func newFollower(clock clock.Clock, log *slog.Logger, board *document.Board) *follower {
	return &follower{clock: clock, log: log, board: board, contacts: newContacts(clock), woken: make(chan struct{}, 1)}
}

// wake makes the loop look at the current state.
func (f *follower) wake() {
	select {
	case f.woken <- struct{}{}:
	default: // a signal waits already
	}
}

// wakeFor wakes the loop for each value of a channel, until the context ends.
func (f *follower) wakeFor(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			f.wake()
		}
	}
}

// loop calls look whenever the state has changed, and when look says so, until the context
// ends.
func (f *follower) loop(ctx context.Context, look func(context.Context) (again time.Time)) {
	for {
		begin := f.clock.Now()
		again := look(ctx)
		took := f.clock.Since(begin)
		if !f.sleep(ctx, min(pauseFactor*took, maxPause), nil) {
			return
		}
		rest := maxSleep
		if !again.IsZero() {
			rest = min(again.Sub(f.clock.Now()), maxSleep)
		}
		if !f.sleep(ctx, rest, f.woken) {
			return
		}
	}
}

// sleep waits until it is woken, but not longer than duration. It returns false when the
// context has ended.
func (f *follower) sleep(ctx context.Context, duration time.Duration, woken <-chan struct{}) bool {
	if duration <= 0 {
		return ctx.Err() == nil
	}
	timer := f.clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-woken:
	case <-timer.C():
	}
	return true
}

// tell publishes and logs what is served, if it is new.
func (f *follower) tell(doc document.Document) {
	if doc.Same(f.told) {
		return
	}
	before := f.told
	f.told = doc
	f.board.Publish(doc)
	if doc.Stale() != before.Stale() {
		f.logView(doc.View)
	}
	before.View = doc.View
	if doc.Same(before) {
		return
	}
	if doc.Rejected != nil {
		f.log.Error("a generation is not served, the last good one stays", "generation", doc.Rejected.Generation, "reason", doc.Rejected.Reason, "message", doc.Rejected.Message)
	}
	logProblems(f.log, before.Problems, doc.Problems)
	f.log.Info("serving", "uid", doc.UID, "generation", doc.Generation, "problems", len(doc.Problems))
}

func (f *follower) logView(view *document.View) {
	if view.Current {
		f.log.Info("the API server is heard again")
		return
	}
	f.log.Warn("the API server is not heard, what was read before is served", "since", view.Since, "of", view.Of)
}

// subject is what a watch is about.
type subject struct {
	kind string
	name string // of the only object, or the namespace of all; for the log
	// optional means that the cluster may not have the kind.
	optional bool
}

// follow keeps a store up to date in the background, until the context ends. failed is called
// with each error, if it is not nil.
func follow[O metav1.Object, T any](
	ctx context.Context, f *follower, what subject, from *cache.ListWatch, kind any, store *store[O, T], failed func(error),
) {
	last := ""
	heard := f.contacts.add(what.kind)
	replaced := store.replaced
	store.replaced = func() { heard.filled(); replaced() }
	f.following.Go(func() {
		defer f.contacts.remove(heard)
		reflect(ctx, what.kind, heard.through(from), kind, store, func(err error) {
			text := err.Error()
			logged := text == last // an error that lasts for an hour is logged once
			last = text
			if what.optional && apierrors.IsNotFound(err) && store.absent() {
				heard.absent()
				if !logged {
					f.log.Info("the cluster does not have this kind, so there are none of it", "what", what.kind)
				}
				f.sleep(ctx, absentPause, nil)
				return
			}
			heard.failed(err)
			if !logged {
				f.log.Warn("cannot read from the API server, what was read before is used", "what", what.kind, "name", what.name, "error", err)
			}
			if failed != nil {
				failed(err)
			}
		})
	})
}

// earliest returns the earlier of two times. Zero means no time.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
