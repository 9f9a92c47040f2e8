// Package serve answers requests from the cache, and keeps what backends answer.
//
//	cache.go    the cache of all routes, and what it needs of a table
//	step.go     responses out of the cache, and into it
//	guard.go    forgetting what requests may have changed
//	metrics.go  what the cache says of requests
package serve

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	cachestore "github.com/slipway-dev/slipway/internal/gateway/feature/cache/store"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Engine has the stored responses of all routes.
type Engine struct {
	store   *cachestore.Store
	metrics *metrics
}

// New returns an engine whose metrics are registered. memory is how many bytes the container may use. 0: there is no limit.
func New(memory int64, clock clock.PassiveClock, registerer prometheus.Registerer) *Engine {
	store := cachestore.New(cachestore.RoomWithin(memory), clock)
	return &Engine{store: store, metrics: newMetrics(registerer, store)}
}

// Use returns what is stored.
func (n *Engine) Use() cachestore.Use { return n.store.Use() }

// Backend names a backend of a table for the cache.
func Backend(backend *model.Backend) cachestore.Backend {
	identity := ""
	if backend.TLS != nil {
		identity = backend.TLS.Identity
	}
	way := fmt.Sprintf("%d %d %s", backend.Port, backend.Protocol, identity)
	return cachestore.Backend{Namespace: backend.Namespace, Service: backend.Service, Way: way}
}

// Table is what the cache needs of a table.
type Table struct {
	engine *Engine
	names  []cachestore.Backend
}

// Table returns that of a table with these backends. Nil: no route has a cache and backends.
func (n *Engine) Table(backends []*model.Backend) Table {
	var names []cachestore.Backend
	for _, backend := range backends {
		names = append(names, Backend(backend))
	}
	return Table{engine: n, names: names}
}

// InUse reports whether a route has a cache, and backends.
func (t Table) InUse() bool { return t.names != nil }

// Guard returns what holds on every route.
func (t Table) Guard() Guard { return Guard(t) }

// Of returns the step of a route. fields returns those of a request for the backend, as far as they say what the response is.
func (t Table) Of(policy *cache.Policy, fields func(e *exchange.Exchange) []upstream.Field) Step {
	return Step{Policy: policy, engine: t.engine, names: t.names, fields: fields}
}

// Fields returns the fields of a request that no affinity has added to.
func Fields(e *exchange.Exchange) []upstream.Field { return e.Outgoing.Fields }

// Keep makes the cache forget the responses of all other backends, and the metrics of all other routes.
func (t Table) Keep(backends []int, routes map[string]bool) {
	kept := map[cachestore.Backend]bool{}
	for _, backend := range backends {
		kept[t.names[backend]] = true
	}
	t.engine.store.SetBackends(kept)
	t.engine.metrics.Keep(routes)
}
