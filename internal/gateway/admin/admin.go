// Package admin serves the admin port: readiness, metrics, and which configuration the
// gateway serves.
package admin

import (
	"io"
	"log"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// These are the bounds of the admin port. An exchange may take 45 s because a poll of
// /revision is held for up to 30 s.
const (
	headerTimeout   = 5 * time.Second
	exchangeTimeout = 45 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 16 << 10
	maxConnections  = 256
	maxPerClient    = 32
)

// NewServer returns the server of the admin port. Its listener must come from Limit. A
// request head may take 5 s and 16 KiB, an exchange 45 s.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: exchangeTimeout, WriteTimeout: exchangeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnState: noteState,
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// Handler answers /readyz, /metrics and /revision.
type Handler struct {
	mux      *http.ServeMux
	hasTable func() bool
	board    *document.Board
	leaving  atomic.Bool
}

// New returns a handler. The gateway is ready once it has a table. It is not ready after
// Leave, and not while it stands by, which the board knows.
func New(hasTable func() bool, metrics prometheus.Gatherer, board *document.Board) *Handler {
	h := &Handler{mux: http.NewServeMux(), hasTable: hasTable, board: board}
	h.mux.HandleFunc("GET /readyz", h.ready)
	h.mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	h.mux.Handle("GET "+document.Path, board)
	h.mux.Handle("POST "+document.Path, board)
	return h
}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Leave makes the gateway not ready, so that no new connections come.
func (h *Handler) Leave() { h.leaving.Store(true) }

func (h *Handler) ready(w http.ResponseWriter, _ *http.Request) {
	standby, _, _ := h.board.Standby()
	switch {
	case h.leaving.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case !h.hasTable():
		http.Error(w, "no table yet", http.StatusServiceUnavailable)
	case standby:
		http.Error(w, "cut off from the API server, other replicas are current", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, "ok\n")
	}
}
