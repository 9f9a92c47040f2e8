package watch

import (
	"bytes"
	"context"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// grace is how long a spec waits for a Secret that may not be read. The operator lets the
// gateway read what a spec names as soon as it sees the spec, which may be a moment later
// than the gateway does.
const grace = time.Second

type secretShelf = shelf[*corev1.Secret, map[string][]byte]

// secrets are the Secrets that are named, each watched by its name. Its methods are
// called by one goroutine.
type secrets struct {
	clock clock.PassiveClock
	// watch fills a shelf until the context ends. It does not block.
	watch func(ctx context.Context, name string, shelf *secretShelf, failed func(error))
	wake  func()

	watched map[string]*watchedSecret
}

type watchedSecret struct {
	shelf   *secretShelf
	stop    context.CancelFunc
	since   time.Time
	refused atomic.Bool
}

// want watches these Secrets and no others.
func (s *secrets) want(ctx context.Context, names map[string]bool) {
	for name, w := range s.watched {
		if !names[name] {
			w.stop()
			delete(s.watched, name)
		}
	}
	for name := range names {
		if s.watched[name] == nil {
			s.watched[name] = s.start(ctx, name)
		}
	}
}

func (s *secrets) start(ctx context.Context, name string) *watchedSecret {
	ctx, stop := context.WithCancel(ctx)
	w := &watchedSecret{stop: stop, since: s.clock.Now()}
	w.shelf = &secretShelf{
		keep:     func(in *corev1.Secret) map[string][]byte { return in.Data },
		same:     func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) },
		changed:  func(_, _ *map[string][]byte) { s.wake() },
		replaced: s.wake,
	}
	s.watch(ctx, name, w.shelf, func(err error) {
		if apierrors.IsForbidden(err) && !w.refused.Swap(true) {
			s.wake()
		}
	})
	return w
}

// answered reports whether it is known of each of these Secrets what it holds, or that it
// may not be read. If not, it returns the time at which waiting ends; zero: not yet known.
func (s *secrets) answered(names map[string]bool) (complete bool, end time.Time) {
	complete = true
	for name := range names {
		w := s.watched[name]
		if w.shelf.full() {
			continue
		}
		patience := w.since.Add(grace)
		if w.refused.Load() && !s.clock.Now().Before(patience) {
			continue
		}
		complete = false
		if w.refused.Load() && (end.IsZero() || patience.Before(end)) {
			end = patience
		}
	}
	return complete, end
}

// contents returns what these Secrets hold, and which may not be read.
func (s *secrets) contents(names map[string]bool) (data map[string]map[string][]byte, unreadable map[string]bool) {
	data, unreadable = map[string]map[string][]byte{}, map[string]bool{}
	for name := range names {
		shelf := s.watched[name].shelf
		if content, found := shelf.get(name); found {
			data[name] = content
		} else if !shelf.full() {
			unreadable[name] = true
		}
	}
	return data, unreadable
}
