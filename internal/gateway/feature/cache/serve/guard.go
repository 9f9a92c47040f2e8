package serve

import (
	"errors"
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	cachestore "github.com/slipway-dev/slipway/internal/gateway/feature/cache/store"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Guard makes the cache forget what requests may have changed. It holds on every route of a table, asked for or not.
type Guard struct {
	engine *Engine
	names  []cachestore.Backend // of the table; nil if no route has a cache
}

// Receive makes the cache forget what a request may have changed by its response.
func (g Guard) Receive(e *exchange.Exchange, response *upstream.Response) *upstream.Response {
	if response.Status < http.StatusBadRequest || response.Status >= http.StatusInternalServerError {
		g.forget(e)
	}
	return response
}

// Failed does so without a response.
func (g Guard) Failed(e *exchange.Exchange, err error) {
	if mayBeSent(err) {
		g.forget(e)
	}
}

// forget makes the cache forget what a request may have changed, at all backends of the route: they may have it in common.
func (g Guard) forget(e *exchange.Exchange) {
	if g.names == nil || !cachestore.Changes(e.Method()) {
		return
	}
	e.Targets(func(backend int, host, target string) { g.engine.store.Changed(g.names[backend], host, target) })
}

// mayBeSent reports whether a backend may have got the request, or a part of it, although it has not answered.
func mayBeSent(err error) bool {
	switch upstream.KindOf(err) {
	case upstream.NoEndpoints, upstream.Connect, upstream.InvalidRequest,
		upstream.MaxRequests, upstream.MaxPending, upstream.MaxConnections:
		return false
	}
	failure, ok := errors.AsType[*upstream.Error](err)
	return ok && failure.Endpoint != "" // one was chosen
}
