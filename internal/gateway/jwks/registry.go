package jwks

import (
	"context"
	"sync"

	"k8s.io/utils/clock"
)

// Options are the callbacks for fetches. All are optional.
type Options struct {
	// Failing is called with the first failure of each series of failures. The error
	// contains nothing of the response.
	Failing func(address string, err error)
	// Fetched is called after each fetch, with the error or nil.
	Fetched func(err error)
	// MissingChanged is called when Missing has changed for a source.
	MissingChanged func()
}

// Registry keeps one Source per address.
type Registry struct {
	options Options
	fetcher *fetcher
	added   chan struct{} // tells Run that there are new sources to fetch
	ended   chan struct{} // closed when Run has ended

	mu      sync.Mutex
	sources map[string]*Source
}

// NewRegistry returns an empty registry.
func NewRegistry(options Options) *Registry {
	if options.Failing == nil {
		options.Failing = func(string, error) {}
	}
	if options.Fetched == nil {
		options.Fetched = func(error) {}
	}
	if options.MissingChanged == nil {
		options.MissingChanged = func() {}
	}
	return &Registry{
		options: options, fetcher: newFetcher(), added: make(chan struct{}, 1), ended: make(chan struct{}), sources: map[string]*Source{},
	}
}

// Source returns the source for an address. It creates the source if there is none.
func (r *Registry) Source(address string) *Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sources[address]
	if s == nil {
		s = newSource(address, r)
		r.sources[address] = s
		select {
		case r.added <- struct{}{}:
		default:
		}
	}
	return s
}

// Keep drops the sources for which keep returns false. A caller that holds a dropped source
// still gets its last keys.
func (r *Registry) Keep(keep func(address string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for address, s := range r.sources {
		if !keep(address) {
			delete(r.sources, address)
			close(s.dropped)
		}
	}
}

// Run fetches until the context ends. It must be called only once.
func (r *Registry) Run(ctx context.Context, clock clock.Clock) {
	defer r.fetcher.client.CloseIdleConnections()
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(r.ended)
	for {
		for _, s := range r.unstarted() {
			wait.Go(func() { s.run(ctx, clock) })
		}
		select {
		case <-ctx.Done():
			return
		case <-r.added:
		}
	}
}

func (r *Registry) unstarted() []*Source {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Source
	for _, s := range r.sources {
		if !s.started {
			s.started = true
			list = append(list, s)
		}
	}
	return list
}
