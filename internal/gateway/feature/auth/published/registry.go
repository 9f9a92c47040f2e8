package published

import (
	"context"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Options say what is fetched, and who is told. All but Fetch are optional.
type Options[T any] struct {
	// Fetch gets and parses the document at an address with the client, and says how long
	// it is fresh.
	Fetch func(ctx context.Context, client *http.Client, address string) (*T, time.Duration, error)
	// Failing is called with the first failure of each series of failures. The error
	// contains nothing of the response.
	Failing func(address string, err error)
	// Fetched is called after each fetch, with the error or nil.
	Fetched func(err error)
	// MissingChanged is called when Missing has changed for a source.
	MissingChanged func()
	// Panics is told of a panic of Fetch, which is a failure then. Nil: it ends the process.
	Panics panics.Reporter
	// Guard decides what may be dialed. Nil: it makes no exceptions.
	Guard *dialguard.Guard
}

// Registry keeps one Source per address.
type Registry[T any] struct {
	options Options[T]
	client  *http.Client
	added   chan struct{} // tells Run that there are new sources to fetch
	ended   chan struct{} // closed when Run has ended

	mu      sync.Mutex
	sources map[string]*Source[T]
}

// NewRegistry returns an empty registry.
func NewRegistry[T any](options Options[T]) *Registry[T] {
	if options.Failing == nil {
		options.Failing = func(string, error) {}
	}
	if options.Fetched == nil {
		options.Fetched = func(error) {}
	}
	if options.MissingChanged == nil {
		options.MissingChanged = func() {}
	}
	return &Registry[T]{
		options: options, client: newClient(options.Guard), added: make(chan struct{}, 1), ended: make(chan struct{}), sources: map[string]*Source[T]{},
	}
}

// Source returns the source for an address. It creates the source if there is none.
func (r *Registry[T]) Source(address string) *Source[T] {
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
// still gets its last document.
func (r *Registry[T]) Keep(keep func(address string) bool) {
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
func (r *Registry[T]) Run(ctx context.Context, clock clock.Clock) {
	defer r.client.CloseIdleConnections()
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

func (r *Registry[T]) unstarted() []*Source[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []*Source[T]
	for _, s := range r.sources {
		if !s.started {
			s.started = true
			list = append(list, s)
		}
	}
	return list
}
