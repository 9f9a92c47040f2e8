package proxy

import (
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Options configures a Handler. The zero value of a field means its default.
type Options struct {
	// Clock is where the time comes from. Default: the real one.
	Clock clock.PassiveClock
	// Upstream configures the connections to backends.
	Upstream upstream.Options
	// Via is the name that the gateway gives itself in the field Via of the requests to
	// backends, as RFC 9110, 7.6.3 wants. Default: slipway.
	Via string
	// Realm is what basic authentication asks for where the route does not say it.
	// Default: slipway.
	Realm string
	// ClientTimeout is how long a client may send nothing of a request's body, where the route
	// does not say it, or take nothing of a response. Default 1 min.
	ClientTimeout time.Duration
	// BackendTimeout is how long a backend may send nothing of a response's body, where the
	// route does not say it. Default 5 min.
	BackendTimeout time.Duration
	// AccessLog is where a line is written for each request. Default: nowhere.
	AccessLog io.Writer
	// Tracer makes a span of each request. Default: none; what a client says of its trace
	// reaches the backend as it is.
	Tracer trace.Tracer
	// Metrics is where metrics are registered. Default: nowhere.
	Metrics prometheus.Registerer
	// KeysFailing is called when the public keys at an address begin to be out of reach.
	// Optional.
	KeysFailing func(address string, err error)
	// KeysMissingChanged is called when MissingKeys has changed. Optional.
	KeysMissingChanged func()
	// HealthChanged is called when the checks of a backend, named service:port, have found
	// an endpoint unhealthy, with why, and when it is healthy again, with nil. Optional.
	HealthChanged func(backend, endpoint string, err error)
}

// Config is what a Handler serves. It is swapped as a whole.
type Config struct {
	// Table has the routes.
	Table *table.Table
	// TrustedProxies are the addresses whose X-Forwarded and Forwarded fields are believed.
	TrustedProxies []netip.Prefix
	// LogPercent is the share of the requests that the access log has, from 0 to 100.
	// Server errors it always has, except at 0.
	LogPercent uint32
	// Connections bound the connections of clients. The zero value has no bounds.
	Connections connlimit.Limits
	// Requests bounds the requests under way, of which a client has a share (clients.Places).
	// 0 is no bound.
	Requests int
}

// Handler serves requests as the table says.
type Handler struct {
	options     Options
	registry    *upstream.Registry
	keys        *jwks.Registry
	limiter     *limiter
	passwords   *passwords
	log         *accessLog
	metrics     *metrics
	mirrors     *mirrors
	tunnels     conns // that speak another protocol
	draining    atomic.Bool
	connections connlimit.Counter // of clients
	underWay    underWay
	standby     atomic.Bool

	current atomic.Pointer[state]
	set     sync.Mutex // one Set at a time
	via     [3]string  // for HTTP/1.0, 1.1 and 2
	// certificates are those of the server, nil where it has none.
	certificates atomic.Pointer[Certificates]
}

// state is a Config with what belongs to it.
type state struct {
	Config

	services []*upstream.Service     // by Backend.Index
	keys     map[string]*jwks.Source // by address
	metrics  []*routeMetrics         // by Route.Index
}

// New returns a Handler without a table; until it has one it answers 503.
func New(options Options) *Handler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.ClientTimeout == 0 {
		options.ClientTimeout = time.Minute
	}
	if options.BackendTimeout == 0 {
		options.BackendTimeout = 5 * time.Minute
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
		options:   options,
		limiter:   newLimiter(options.Clock),
		metrics:   newMetrics(options.Metrics),
		mirrors:   newMirrors(),
		passwords: newPasswords(options.Clock),
	}
	h.log = newAccessLog(options.AccessLog, func(lines int) { h.metrics.dropped.Add(float64(lines)) })
	h.connections.Refused = func(why connlimit.Refusal) { h.metrics.refused[why].Inc() }
	h.metrics.watchConnections(options.Metrics, h.connections.Open)
	h.keys = jwks.NewRegistry(jwks.Options{Failing: options.KeysFailing, Fetched: h.metrics.fetched, MissingChanged: options.KeysMissingChanged})
	options.Upstream.Checked = h.checked
	h.registry = upstream.NewRegistry(options.Upstream)
	h.via = [3]string{"1.0 " + options.Via, "1.1 " + options.Via, "2.0 " + options.Via}
	return h
}

// Set serves another table from the next request on. What it needs is there before the
// first request sees it, and requests under way end with the table they began with.
func (h *Handler) Set(config Config) {
	h.set.Lock()
	defer h.set.Unlock()
	routes, backends := config.Table.Routes, config.Table.Backends
	next := &state{Config: config, services: make([]*upstream.Service, len(backends))}
	used := make(map[string]bool, len(backends))
	for i, backend := range backends {
		used[backend.ID] = true
		next.services[i] = h.registry.Service(backend.ID)
		next.services[i].SetLimits(upstream.Limits(backend.Limits))
		next.services[i].SetProtocol(protocolOf(backend))
		next.services[i].SetCheck(checkOf(backend))
		next.services[i].Add(backend.Endpoints)
	}
	next.keys = h.keySources(routes)
	next.metrics = h.metrics.forRoutes(routes)
	h.metrics.setChecks(backends)
	h.connections.SetLimits(config.Connections)
	h.current.Store(next)
	for i, backend := range backends { // nobody picks by the old table any more what goes now
		next.services[i].Set(backend.Endpoints)
	}
	h.registry.Keep(func(id string) bool { return used[id] })
	h.keys.Keep(func(address string) bool { return next.keys[address] != nil })
	h.metrics.keepRoutes(routes)
}

// keySources returns the sources of the public keys that routes ask for.
func (h *Handler) keySources(routes []*table.Route) map[string]*jwks.Source {
	sources := map[string]*jwks.Source{}
	for _, route := range routes {
		if route.Auth != nil && route.Auth.JWT != nil && route.Auth.JWT.JWKSURL != "" {
			sources[route.Auth.JWT.JWKSURL] = h.keys.Source(route.Auth.JWT.JWKSURL)
		}
	}
	return sources
}

// MissingKeys tells the addresses from which public keys could not be fetched yet: no
// request gets through a route that needs them.
func (h *Handler) MissingKeys() map[string]bool {
	missing := map[string]bool{}
	if current := h.current.Load(); current != nil {
		for address, source := range current.keys {
			if source.Missing() {
				missing[address] = true
			}
		}
	}
	return missing
}

// Ready reports whether there is a table.
func (h *Handler) Ready() bool { return h.current.Load() != nil }

// Registry returns the connections to the backends, which somebody must keep tidy.
func (h *Handler) Registry() *upstream.Registry { return h.registry }

var exchanges = sync.Pool{New: func() any {
	e := new(exchange)
	e.informed = e.inform
	e.taking = &watch{cut: e.cutStream}
	return e
}}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := exchanges.Get().(*exchange)
	e.begin(h, w, r)
	ended := false
	defer func() {
		if !ended { // a panic must not keep its place
			e.leave()
		}
	}()
	e.serve()
	if r.ProtoMajor == 2 {
		e.sendRest()
	}
	e.boundEnd()
	if e.body != nil && !e.body.whole() {
		e.finishConnection()
	}
	if r.ProtoMajor == 2 {
		e.watchResets()
	}
	aborted, tunneled := e.aborted, e.tunneled
	e.leave()
	ended = true
	e.end()
	if tunneled != nil {
		h.tunnels.remove(tunneled) // when it has been logged
	}
	if aborted {
		// The response is not whole, and the client must be able to see it.
		panic(http.ErrAbortHandler)
	}
}
