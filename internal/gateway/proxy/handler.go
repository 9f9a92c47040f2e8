package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Options configures a Handler. The zero value of a field means its default.
type Options struct {
	// Clock is where the time comes from. Default: the real one.
	Clock clock.PassiveClock
	// Upstream configures the connections to backends.
	Upstream upstream.Options
	// TrustedProxies are the addresses whose X-Forwarded and Forwarded fields are
	// believed. Default: none.
	TrustedProxies []netip.Prefix
	// Via is the name that the gateway gives itself in the field Via of the requests to
	// backends, as RFC 9110, 7.6.3 wants. Default: slipway.
	Via string
	// Realm is what basic authentication asks for where the route does not say it.
	// Default: slipway.
	Realm string
	// AccessLog is where a line is written for each request. Default: nowhere.
	AccessLog io.Writer
	// AccessLogSample is how many requests there are for each line of the access log;
	// server errors always have one. Default 1.
	AccessLogSample uint64
	// Metrics is where metrics are registered. Default: nowhere.
	Metrics prometheus.Registerer
}

// Handler serves requests as the table says.
type Handler struct {
	options   Options
	registry  *upstream.Registry
	limiter   *limiter
	passwords passwords
	log       *accessLog
	metrics   *metrics
	mirrors   *mirrors
	tunnels   tunnels
	draining  atomic.Bool

	current atomic.Pointer[state]
	set     sync.Mutex // one SetTable at a time
}

// state is a table with what belongs to it. It is swapped as a whole.
type state struct {
	table    *table.Table
	services []*upstream.Service // by Backend.Index
	metrics  []*routeMetrics     // by Route.Index
}

// New returns a Handler without a table; until it has one it answers 503.
func New(options Options) *Handler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.Via == "" {
		options.Via = "slipway"
	}
	if options.Realm == "" {
		options.Realm = "slipway"
	}
	if options.Upstream.Clock == nil {
		options.Upstream.Clock = options.Clock
	}
	h := &Handler{
		options:  options,
		registry: upstream.NewRegistry(options.Upstream),
		limiter:  newLimiter(options.Clock),
		log:      newAccessLog(options.AccessLog, options.AccessLogSample),
		metrics:  newMetrics(options.Metrics),
		mirrors:  newMirrors(),
	}
	h.passwords.init()
	return h
}

// SetTable serves another table from the next request on. What it needs is there before
// the first request sees it, and requests under way end with the table they began with.
func (h *Handler) SetTable(t *table.Table) {
	h.set.Lock()
	defer h.set.Unlock()
	next := &state{table: t, services: make([]*upstream.Service, len(t.Backends))}
	used := make(map[string]bool, len(t.Backends))
	for i, backend := range t.Backends {
		used[backend.ID] = true
		next.services[i] = h.registry.Service(backend.ID)
		next.services[i].Set(backend.Endpoints)
	}
	next.metrics = h.metrics.forRoutes(t.Routes)
	h.current.Store(next)
	h.registry.Keep(func(id string) bool { return used[id] })
	h.metrics.keepRoutes(t.Routes)
}

// Ready reports whether there is a table.
func (h *Handler) Ready() bool { return h.current.Load() != nil }

// Registry returns the connections to the backends, which somebody must keep tidy.
func (h *Handler) Registry() *upstream.Registry { return h.registry }

// FlushLog writes what the access log has collected.
func (h *Handler) FlushLog() error { return h.log.flush() }

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchanges.Get().(*exchange)
	e.begin(h, w, r)
	e.serve()
	aborted := e.aborted
	e.end()
	if aborted {
		// The response is not whole, and the client must be able to see it.
		panic(http.ErrAbortHandler)
	}
}
