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

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	ratelimitserve "github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/serve"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/gateway/whole"
)

// Options configures a Handler. The zero value of a field means its default.
type Options struct {
	// Clock gives the time. Default: the real clock.
	Clock clock.PassiveClock
	// Upstream configures the connections to backends.
	Upstream upstream.Options
	// Via is the gateway's name in the field Via of requests to backends, which RFC 9110,
	// 7.6.3 requires. Default: slipway.
	Via string
	// Realm is the realm of basic authentication when the route has none. Default: slipway.
	Realm string
	// ClientTimeout bounds how long a client may send nothing of a request's body, when the
	// route has no bound. It also bounds how long a client may take nothing of a response.
	// Default 1 min.
	ClientTimeout time.Duration
	// BackendTimeout bounds how long a backend may send nothing of a response's body, when
	// the route has no bound. Default 5 min.
	BackendTimeout time.Duration
	// StreamTimeout is how long a connection whose bytes are forwarded may be silent in both directions. Default 1 h.
	StreamTimeout time.Duration
	// SessionTimeout is how long a client and a backend of datagrams may send nothing to each other. Default 1 min.
	SessionTimeout time.Duration
	// AccessLog receives one line for each request. Default: no access log.
	AccessLog io.Writer
	// Gateway is the namespace and name of the Gateway of the Gateway API, for the access log.
	// Default: the lines have none.
	Gateway string
	// Identity is the kind, namespace and name of the gateway. Only a gateway with the same one reads its sessions.
	Identity string
	// Tracer makes a span for each request. Default: none. Then the client's trace fields
	// reach the backend unchanged.
	Tracer trace.Tracer
	// Metrics registers the metrics. Default: no registration.
	Metrics prometheus.Registerer
	// Guard decides from where keys, providers and tokens may be fetched. Nil: it makes no exceptions.
	Guard *dialguard.Guard
	// Backends decides which endpoints of Services may be dialed: of backends, of their copies, and of what routes ask whether a
	// request may come in. Nil: all, so that Upstream.Dial is used.
	Backends *dialguard.Guard
	// KeysFailing is called when fetching public keys from an address begins to fail.
	// Optional.
	KeysFailing func(address string, err error)
	// ProviderFailing is called when fetching what the provider of an issuer publishes begins to fail. Optional.
	ProviderFailing func(issuer string, err error)
	// KeysMissingChanged is called when MissingKeys has changed. Optional.
	KeysMissingChanged func()
	// Memory is how many bytes of memory the container may use. The cache of responses takes a part of them. 0: there is no limit.
	Memory int64
	// Shared counts requests for the rate limits that all replicas share. Default: this replica
	// counts them alone.
	Shared ratelimitserve.SharedLimiter
	// HealthChanged is called when the health checks of a backend (service:port) find an
	// endpoint unhealthy, with the reason. It is called with nil when the endpoint is
	// healthy again. Optional.
	HealthChanged func(backend, endpoint string, err error)
	// Panics is told of a panic of what serves one client, which ends that alone (package panics says where that does not hold).
	// Default: net/http ends a request, and any other panic ends the process.
	Panics panics.Reporter
}

// Config is what a Handler serves. It is swapped as a whole.
type Config struct {
	// Table is the table of routes.
	Table *table.Table
	// TrustedProxies are the addresses whose X-Forwarded and Forwarded fields are trusted.
	TrustedProxies []netip.Prefix
	// ClientHeaders tell backends which certificate a client has shown.
	ClientHeaders ClientHeaders
	// LogPercent is the percentage of requests in the access log, from 0 to 100. Server
	// errors are always logged, except at 0.
	LogPercent uint32
	// Connections bounds the connections of clients. The zero value has no bounds.
	Connections connlimit.Limits
	// Requests bounds the requests in flight. Each client has a share (clients.Places). 0
	// means no bound.
	Requests int
	// SessionKey makes the names of backends and endpoints for Affinity. All replicas must have the same one, and clients
	// must not know it. Nil: a key that only this process has.
	SessionKey []byte
}

// Handler serves requests according to the table.
type Handler struct {
	options     Options
	process     exchange.Process
	features    features
	registry    *upstream.Registry
	log         *telemetry.Log
	metrics     *telemetry.Metrics
	tunnels     conns // upgraded to another protocol, or forwarded as they are
	draining    atomic.Bool
	connections connlimit.Counter // of clients
	sessions    connlimit.Counter // of clients of datagrams
	underWay    underWay
	standby     atomic.Bool

	current atomic.Pointer[state]
	set     sync.Mutex // serializes Set
	via     [3]string  // for HTTP/1.0, 1.1 and 2
	// everywhere are the steps of requests before there is a table.
	everywhere exchange.Steps
	// certificates are the server's certificates. Nil if it has none.
	certificates atomic.Pointer[Certificates]
}

// state is a Config with the data that belongs to it.
type state struct {
	Config

	secure     *certificateSet     // with which the table came; nil without TLS
	services   []*upstream.Service // by Backend.Index
	metrics    []*telemetry.Route  // by Route.Place
	bound      bound
	everywhere exchange.Steps
	steps      []*exchange.Steps // by Route.Place
}

// New returns a Handler without a table. It answers 503 until it has one.
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
	if options.StreamTimeout == 0 {
		options.StreamTimeout = time.Hour
	}
	if options.SessionTimeout == 0 {
		options.SessionTimeout = time.Minute
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
	if options.Backends != nil {
		options.Upstream.Dial = options.Backends.DialTCP
	}
	h := &Handler{options: options, metrics: telemetry.New(options.Metrics)}
	h.process = exchange.Process{
		Clock: options.Clock, ClientTimeout: options.ClientTimeout, Realm: options.Realm, Panics: options.Panics,
		Room: whole.NewRoom(), SendsAway: h.sendsAway,
	}
	h.features = newFeatures(&options)
	h.log = telemetry.NewLog(options.AccessLog, options.Gateway, h.metrics.LinesDropped)
	h.connections.Refused, h.sessions.Refused = h.metrics.ConnectionRefused, h.metrics.SessionRefused
	telemetry.WatchConnections(options.Metrics, h.connections.Open, h.sessions.Open)
	options.Upstream.Checked, options.Upstream.Panics = h.checked, options.Panics
	h.registry = upstream.NewRegistry(options.Upstream)
	h.everywhere = everywhere(&bound{})
	h.via = [3]string{"1.0 " + options.Via, "1.1 " + options.Via, "2.0 " + options.Via}
	return h
}

// Set serves another table from the next request on. Certificates that belong to it must be set before. Everything that the table needs is
// ready before its first request. Requests in flight keep the table with which they began.
func (h *Handler) Set(config Config) {
	h.set.Lock()
	defer h.set.Unlock()
	routes, backends := config.Table.Routes, config.Table.Backends
	next := &state{Config: config, services: make([]*upstream.Service, len(backends)), secure: h.certificates.Load().set()}
	used := make(map[string]bool, len(backends))
	for i, backend := range backends {
		used[backend.ID] = true
		next.services[i] = h.registry.Service(backend.ID, (*upstream.TLS)(backend.TLS))
		next.services[i].SetLimits(backend.Limits)
		next.services[i].SetProtocol(protocolOf(backend))
		next.services[i].SetCheck(checkOf(backend))
		next.services[i].Add(backend.Endpoints)
	}
	next.bound = h.features.bind(next)
	next.metrics = h.routeMetrics(routes)
	h.bindSteps(next)
	h.metrics.SetChecks(backends)
	h.connections.SetLimits(config.Connections)
	h.sessions.SetLimits(config.Connections)
	h.current.Store(next)
	next.bound.keep(next)
	for i, backend := range backends { // no request can pick these by the old table any more
		next.services[i].Set(backend.Endpoints)
	}
	h.registry.Keep(func(id string) bool { return used[id] })
	h.keepMetrics(routes)
}

// MissingKeys returns the addresses from which no public keys could be fetched yet. Routes
// that need these keys let no request through. The addresses of providers are among them.
func (h *Handler) MissingKeys() map[string]bool {
	if current := h.current.Load(); current != nil {
		return current.bound.auth.MissingKeys()
	}
	return map[string]bool{}
}

// Ready reports whether there is a table.
func (h *Handler) Ready() bool { return h.current.Load() != nil }

// Registry returns the connections to backends. The caller must run it, so that unused ones
// are closed.
func (h *Handler) Registry() *upstream.Registry { return h.registry }

var calls = sync.Pool{New: func() any { return new(call) }}

// ServeHTTP serves a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer h.options.Panics.Abort("serve a request")
	e := calls.Get().(*call)
	e.begin(h, w, r)
	ended := false
	defer func() {
		if !ended {
			e.crash()
		}
	}()
	e.serve()
	if r.ProtoMajor == 2 {
		e.SendRest()
	}
	e.BoundEnd()
	clientConnOf(r).stream(false)
	if e.Body.IsCut() {
		e.finishConnection()
	}
	if r.ProtoMajor == 2 {
		e.watchResets()
	}
	aborted := e.Answer.Aborted
	if e.Answer.Tunnel != nil {
		defer h.tunnels.remove(e.Answer.Tunnel) // after it was logged
	}
	e.leave()
	ended = true
	e.end()
	if aborted {
		// The response is incomplete, and the client must be able to detect that.
		panic(http.ErrAbortHandler)
	}
}
