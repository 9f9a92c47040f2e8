package upstream

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// tidyEvery is how often idle connections are looked at.
const tidyEvery = 5 * time.Second

// Registry keeps one Service per key, with its connections and what it knows of their
// health, whatever happens to the routes that lead to it.
type Registry struct {
	options Options
	woken   chan struct{} // somebody must look for endpoints that nobody checks

	mu       sync.Mutex
	services map[string]*Service
}

// NewRegistry returns an empty registry whose Services have these options.
func NewRegistry(options Options) *Registry {
	return &Registry{options: options, woken: make(chan struct{}, 1), services: map[string]*Service{}}
}

// Service returns the Service of a key, such as "name:port", and makes it if there is none.
func (r *Registry) Service(key string) *Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.services[key]
	if s == nil {
		s = NewService(r.options)
		s.key, s.wake = key, r.wake
		r.services[key] = s
	}
	return s
}

// Keep drops the Services for which keep is false. Somebody may hold one still: its
// requests succeed as before, but leave no connection behind.
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

func (r *Registry) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // somebody will look anyway
	}
}

// Run closes idle connections in time and checks endpoints, until the context ends.
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
			r.Each(func(_ string, s *Service) { s.startChecks(ctx, ticking, &checks) })
		}
	}
}
