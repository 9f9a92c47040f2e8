package upstream

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// tidyEvery is how often idle connections are checked.
const tidyEvery = 5 * time.Second

// Registry keeps one Service per key, with its connections and health, even when the routes
// to it change.
type Registry struct {
	options Options
	woken   chan struct{} // gets a value when new endpoints need checks
	windows windows       // of responses from all Services

	mu       sync.Mutex
	services map[string]*Service
	paces    map[string]*rate.Limiter // of checks, by Check.Owner
}

// NewRegistry returns an empty registry. Its Services have these options.
func NewRegistry(options Options) *Registry {
	return &Registry{options: options, woken: make(chan struct{}, 1), services: map[string]*Service{}, paces: map[string]*rate.Limiter{}}
}

// Service returns the Service for a key such as "name:port", whose endpoints are reached with
// TLS unless secure is nil. It creates the Service if there is none. It drops one with another
// TLS, as Keep does: its connections are not those that are wanted.
func (r *Registry) Service(key string, secure *TLS) *Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.services[key]
	if s != nil && !s.secure.same(secure) {
		s.retire()
		s = nil
	}
	if s == nil {
		s = NewService(r.options, secure)
		s.key, s.wake, s.windows = key, r.wake, &r.windows
		r.services[key] = s
	}
	return s
}

// Keep drops the Services for which keep returns false. A caller may still hold a dropped
// one. Its requests still work, but their connections are not kept.
func (r *Registry) Keep(keep func(key string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.services {
		if !keep(key) {
			delete(r.services, key)
			s.retire()
		}
	}
}

// Each calls f for every Service.
func (r *Registry) Each(f func(key string, s *Service)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, s := range r.services {
		f(key, s)
	}
}

// paceOf returns the pace of an owner's checks. It is called by Each.
func (r *Registry) paceOf(owner string) *rate.Limiter {
	if owner == "" {
		return nil
	}
	if r.paces[owner] == nil {
		r.paces[owner] = rate.NewLimiter(checksPerSecond, checksPerSecond/10)
	}
	return r.paces[owner]
}

func (r *Registry) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // a signal waits already
	}
}

// Run closes idle connections and checks endpoints, until the context ends.
func (r *Registry) Run(ctx context.Context, ticking clock.WithTicker) {
	ticker := ticking.NewTicker(tidyEvery)
	defer ticker.Stop()
	var checks sync.WaitGroup
	defer checks.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			r.Each(func(_ string, s *Service) { s.Tidy() })
		case <-r.woken:
			r.Each(func(_ string, s *Service) { s.startChecks(ctx, ticking, &checks, r.paceOf) })
		}
	}
}
