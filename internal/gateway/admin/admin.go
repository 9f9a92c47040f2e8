// Package admin serves what is not traffic: readiness, metrics and what is served.
package admin

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler answers /readyz, /metrics and /revision.
type Handler struct {
	mux      *http.ServeMux
	hasTable func() bool
	leaving  atomic.Bool
}

// New returns a handler. The gateway is ready once it has a table, until Leave. revision
// answers /revision.
func New(hasTable func() bool, metrics prometheus.Gatherer, revision http.Handler) *Handler {
	h := &Handler{mux: http.NewServeMux(), hasTable: hasTable}
	h.mux.HandleFunc("GET /readyz", h.ready)
	h.mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	h.mux.Handle("GET /revision", revision)
	return h
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Leave makes the gateway not ready any more: no new connections should come.
func (h *Handler) Leave() { h.leaving.Store(true) }

func (h *Handler) ready(w http.ResponseWriter, _ *http.Request) {
	switch {
	case h.leaving.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case !h.hasTable():
		http.Error(w, "no table yet", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ok\n")
	}
}
