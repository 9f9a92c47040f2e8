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
	// askedEvery is how often keys are fetched at most because a token names one that is
	// not known: who makes up names must not be able to storm the issuer.
	askedEvery = 10 * time.Second

	// After a failure the next attempt comes after firstRetry, twice that, and so on.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Source is where an issuer publishes its keys.
type Source struct {
	address  string
	registry *Registry
	dropped  chan struct{} // closed when no route uses it any more
	asked    chan struct{}
	started  bool // guarded by the registry

	keys atomic.Pointer[token.Keys]

	mu       sync.Mutex
	attempt  chan struct{} // closed at the end of the attempt under way, or of the next
	fetching bool
	rested   bool  // since the last attempt askedEvery has passed
	failure  error // of the last attempt; it holds nothing of what was read
}

func newSource(address string, registry *Registry) *Source {
	return &Source{
		address: address, registry: registry, dropped: make(chan struct{}), asked: make(chan struct{}, 1),
		attempt: make(chan struct{}), rested: true,
	}
}

// Keys returns the last keys that were fetched. Where there are none yet it waits for the
// attempt under way; nil means that there are none.
func (s *Source) Keys(ctx context.Context) *token.Keys {
	if keys := s.keys.Load(); keys != nil {
		return keys
	}
	return s.Newer(ctx, nil)
}

// Newer returns keys that are newer than those that were not enough. If there are none it
// has them fetched, unless that was done a moment ago, and waits for them; nil means that
// there are no newer ones.
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

// Missing tells that there are no keys, and that it was tried to fetch them.
func (s *Source) Missing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && s.keys.Load() == nil
}

// run fetches now, whenever the keys have grown old, and when somebody asks.
func (s *Source) run(ctx context.Context, clock clock.Clock) {
	retry := firstRetry
	for {
		before := s.Missing()
		fresh, err := s.fetch(ctx)
		if ctx.Err() == nil { // otherwise it was not the issuer that failed
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

// rest waits until the next attempt is due. It reports false if there is to be none.
func (s *Source) rest(ctx context.Context, clock clock.Clock, wait time.Duration) bool {
	due, rested := clock.NewTimer(wait), clock.NewTimer(askedEvery)
	defer due.Stop()
	defer rested.Stop()
	asked := (chan struct{})(nil) // nobody is heard before the rest is over
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

// fetch gets the keys once, and tells who waits. It returns how long they are fresh.
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
	select { // who asked meanwhile has been answered
	case <-s.asked:
	default:
	}
	close(s.attempt)
	s.attempt = make(chan struct{})
	return fresh, err
}
