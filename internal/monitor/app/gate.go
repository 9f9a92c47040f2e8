package app

import (
	"net/http"
	"sync/atomic"
)

// gate leads requests to what answers until it is opened, and from then on to a handler.
type gate struct {
	before  http.Handler
	handler atomic.Pointer[http.Handler]
}

// ServeHTTP answers a request.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := g.handler.Load(); handler != nil {
		(*handler).ServeHTTP(w, r)
		return
	}
	g.before.ServeHTTP(w, r)
}

func (g *gate) open(handler http.Handler) { g.handler.Store(&handler) }
