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

// grace is how long a new spec waits for a Secret that the gateway may not read. The
// operator grants the right when it sees the spec, which may be a moment later than the
// gateway.
const grace = time.Second

type secretStore = store[*corev1.Secret, map[string][]byte]

// secrets are the Secrets that specs name. Each is watched by its name. Only one goroutine
// may call the methods.
type secrets struct {
	clock clock.PassiveClock
	// watch fills a store until the context ends. It does not block.
	watch func(ctx context.Context, name string, store *secretStore, failed func(error))
	wake  func()

	watched map[string]*watchedSecret
}

type watchedSecret struct {
	store   *secretStore
	stop    context.CancelFunc
	since   time.Time
	refused atomic.Bool
}

// want watches exactly these Secrets.
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
	w.store = &secretStore{
		keep:     func(in *corev1.Secret) map[string][]byte { return in.Data },
		same:     func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) },
		changed:  func(_, _ *map[string][]byte) { s.wake() },
		replaced: s.wake,
	}
	s.watch(ctx, name, w.store, func(err error) {
		if apierrors.IsForbidden(err) && !w.refused.Swap(true) {
			s.wake()
		}
	})
	return w
}

// answered reports whether each of these Secrets was either read or refused. If not, end is
// when the waiting ends. It is zero if that is not known yet.
func (s *secrets) answered(names map[string]bool) (complete bool, end time.Time) {
	complete = true
	for name := range names {
		w := s.watched[name]
		if w.store.full() {
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

// contents returns the contents of these Secrets, and the names of those that may not be
// read.
func (s *secrets) contents(names map[string]bool) (data map[string]map[string][]byte, unreadable map[string]bool) {
	data, unreadable = map[string]map[string][]byte{}, map[string]bool{}
	for name := range names {
		store := s.watched[name].store
		if content, found := store.get(name); found {
			data[name] = content
		} else if !store.full() {
			unreadable[name] = true
		}
	}
	return data, unreadable
}
