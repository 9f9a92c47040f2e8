package jwks

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/token"
)

const (
	// askedEvery is the least time between two fetches that unknown key names in tokens
	// cause. So a client that invents key names cannot flood the issuer.
	askedEvery = 10 * time.Second

	// After a failure the next attempt follows after firstRetry. The wait doubles with each
	// further failure, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Source is an address at which an issuer publishes its keys.
type Source struct {
	address  string
	registry *Registry
	dropped  chan struct{} // closed when no route uses it any more
	asked    chan struct{}
	started  bool // guarded by the registry

	keys atomic.Pointer[token.Keys]

	mu       sync.Mutex
	attempt  chan struct{} // closed at the end of the current attempt, or of the next one
	fetching bool
	rested   bool  // askedEvery has passed since the last attempt
	failure  error // of the last attempt; it contains nothing of the response
}

func newSource(address string, registry *Registry) *Source {
	return &Source{
		address: address, registry: registry, dropped: make(chan struct{}), asked: make(chan struct{}, 1),
		attempt: make(chan struct{}), rested: true,
	}
}

// Keys returns the last keys that were fetched. If there are none yet, it waits for the
// current attempt. It returns nil if there are none after that.
func (s *Source) Keys(ctx context.Context) *token.Keys {
	if keys := s.keys.Load(); keys != nil {
		return keys
	}
	return s.Newer(ctx, nil)
}

// Newer returns keys newer than the given ones, which were not enough. If there are none,
// it asks for a fetch, unless one was just done, and waits. It returns nil if there are no
// newer keys.
func (s *Source) Newer(ctx context.Context, than *token.Keys) *token.Keys {
	s.mu.Lock()
	if keys := s.keys.Load(); keys != than {
		s.mu.Unlock()
		return keys
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
	if keys := s.keys.Load(); keys != than {
		return keys
	}
	return nil
}

// Missing reports whether there are no keys although a fetch was tried.
func (s *Source) Missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.keys.Load() == nil
}

// run fetches at once, whenever the keys are no longer fresh, and when a caller asks.
func (s *Source) run(ctx context.Context, clock clock.Clock) {
	retry := firstRetry
	for {
		before := s.Missing()
		fresh, err := s.fetch(ctx)
		if ctx.Err() == nil { // a canceled fetch is not the issuer's failure
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
func (s *Source) rest(ctx context.Context, clock clock.Clock, wait time.Duration) bool {
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

// fetch gets the keys once and wakes the callers that wait. It returns how long the keys
// are fresh.
func (s *Source) fetch(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	s.fetching = true
	s.mu.Unlock()
	keys, fresh, err := s.registry.fetcher.fetch(ctx, s.address)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.keys.Store(keys)
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
