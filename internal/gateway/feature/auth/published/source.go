package published

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// askedEvery is the least time between two fetches that callers ask for. So a client that
	// invents names of keys cannot flood the provider.
	askedEvery = 10 * time.Second

	// After a failure the next attempt follows after firstRetry. The wait doubles with each
	// further failure, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Source is an address at which a provider publishes a document.
type Source[T any] struct {
	address  string
	registry *Registry[T]
	dropped  chan struct{} // closed when no route uses it any more
	asked    chan struct{}
	started  bool // guarded by the registry

	last atomic.Pointer[T]

	mu       sync.Mutex
	attempt  chan struct{} // closed at the end of the current attempt, or of the next one
	fetching bool
	rested   bool  // askedEvery has passed since the last attempt
	failure  error // of the last attempt; it contains nothing of the response
}

func newSource[T any](address string, registry *Registry[T]) *Source[T] {
	return &Source[T]{
		address: address, registry: registry, dropped: make(chan struct{}), asked: make(chan struct{}, 1),
		attempt: make(chan struct{}), rested: true,
	}
}

// Last returns the last document that was fetched, or nil. It never waits.
func (s *Source[T]) Last() *T { return s.last.Load() }

// Latest returns the last document that was fetched. If there is none yet, it waits for the
// current attempt. It returns nil if there is none after that.
func (s *Source[T]) Latest(ctx context.Context) *T {
	if last := s.last.Load(); last != nil {
		return last
	}
	return s.Newer(ctx, nil)
}

// Newer returns a document newer than the given one, which was not enough. If there is none,
// it asks for a fetch, unless one was just done, and waits. It returns nil if there is
// nothing newer.
func (s *Source[T]) Newer(ctx context.Context, than *T) *T {
	s.mu.Lock()
	if last := s.last.Load(); last != than {
		s.mu.Unlock()
		return last
	}
	if !s.fetching && !s.rested {
		s.mu.Unlock()
		return nil
	}
	attempt := s.attempt
	s.mu.Unlock()
	select {
	case s.asked <- struct{}{}:
	default:
	}
	select {
	case <-attempt:
	case <-s.dropped:
	case <-s.registry.ended:
	case <-ctx.Done():
	}
	if last := s.last.Load(); last != than {
		return last
	}
	return nil
}

// Missing reports whether there is no document although a fetch was tried.
func (s *Source[T]) Missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.last.Load() == nil
}

// run fetches at once, whenever the document is no longer fresh, and when a caller asks.
func (s *Source[T]) run(ctx context.Context, clock clock.Clock) {
	retry := firstRetry
	for {
		before := s.Missing()
		fresh, err := s.fetch(ctx)
		if ctx.Err() == nil { // a canceled fetch is not the provider's failure
			s.registry.options.Fetched(err)
		}
		if s.Missing() != before {
			s.registry.options.MissingChanged()
		}
		wait := fresh
		if err != nil {
			if retry == firstRetry {
				s.registry.options.Failing(s.address, err)
			}
			wait = retry + rand.N(retry/4+1)
			retry = min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		if !s.rest(ctx, clock, wait) {
			return
		}
	}
}

// rest waits until the next attempt is due. It returns false if there is no next attempt.
func (s *Source[T]) rest(ctx context.Context, clock clock.Clock, wait time.Duration) bool {
	due, rested := clock.NewTimer(wait), clock.NewTimer(askedEvery)
	defer due.Stop()
	defer rested.Stop()
	asked := (chan struct{})(nil) // nil until askedEvery has passed: no early fetch
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.dropped:
			return false
		case <-due.C():
			return true
		case <-asked:
			return true
		case <-rested.C():
			asked = s.asked
			s.mu.Lock()
			s.rested = true
			s.mu.Unlock()
		}
	}
}

// get fetches the document. A panic is a failure.
func (s *Source[T]) get(ctx context.Context) (document *T, fresh time.Duration, err error) {
	defer s.registry.options.Panics.CatchError("fetch what a provider publishes", &err)
	return s.registry.options.Fetch(ctx, s.registry.client, s.address)
}

// fetch gets the document once and wakes the callers that wait. It returns how long the
// document is fresh.
func (s *Source[T]) fetch(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	s.fetching = true
	s.mu.Unlock()
	document, fresh, err := s.get(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last.Store(document)
	}
	s.fetching, s.rested, s.failure = false, false, err
	select { // a request from before the end of this fetch is answered by it
	case <-s.asked:
	default:
	}
	close(s.attempt)
	s.attempt = make(chan struct{})
	return fresh, err
}
