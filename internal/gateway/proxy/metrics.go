package proxy

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/metric"
)

// noRoute is the label value for requests without a route. No route can have this name.
const noRoute = "-"

// Definitions describes the metrics. The routes of the table bound their labels. Nothing
// that a client sends becomes a label.
func Definitions() []metric.Definition {
	return []metric.Definition{
		{Name: "slipway_gateway_requests_total", Type: metric.Counter, Labels: []string{"route", "status"}, Help: "Requests answered, by route and class of status. The route is - if none matched, and the status maintenance while the route is closed."},
		{Name: "slipway_gateway_request_duration_seconds", Type: metric.Histogram, Labels: []string{"route"}, Help: "Time from the arrival of a request to the end of its response, in seconds."},
		{Name: "slipway_gateway_upstream_errors_total", Type: metric.Counter, Labels: []string{"route", "kind"}, Help: "Requests that got no response from their backend, by route and kind of error."},
		{Name: "slipway_gateway_health_checks_total", Type: metric.Counter, Labels: []string{"service", "port", "result"}, Help: "Health checks of the endpoints of a backend, by Service, port and result: ok or error."},
		{Name: "slipway_gateway_retries_total", Type: metric.Counter, Labels: []string{"route"}, Help: "Times that a request was sent to its backend again, by route."},
		{Name: "slipway_gateway_retry_budget_exhausted_total", Type: metric.Counter, Labels: []string{"route"}, Help: "Requests that were not sent again because their Service had used up its retries, by route."},
		{Name: "slipway_gateway_jwks_fetches_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Fetches of the public keys (JWKS) that tokens are checked with, and of what OpenID Connect providers publish, by result: ok or error."},
		{Name: "slipway_gateway_password_checks_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Password checks of basic authentication, by result: right, wrong, client_busy (429: its address has too many waiting), busy (503: the queue is full, or the wait was too long), timeout, canceled."},
		{Name: "slipway_gateway_access_log_lines_dropped_total", Type: metric.Counter, Help: "Lines of the access log that were dropped because the output did not take them."},
		{Name: "slipway_gateway_connections", Type: metric.Gauge, Help: "Connections of clients that are open."},
		{Name: "slipway_gateway_connections_refused_total", Type: metric.Counter, Labels: []string{"limit"}, Help: "Connections of clients that were closed at once, by the limit: max, max_per_client, or proxy_protocol for those without the header that they must begin with."},
		{Name: "slipway_gateway_streams_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Connections whose bytes were forwarded (TLS, TCP) and sessions of datagrams (UDP) that have ended, by route and result: ok, or the failure in the access log. The route is - if none matched."},
		{Name: "slipway_gateway_stream_bytes_total", Type: metric.Counter, Labels: []string{"route", "direction"}, Help: "Bytes of these connections and sessions, by route and direction: received from clients, or sent to them. They are counted at the end."},
		{Name: "slipway_gateway_datagram_sessions", Type: metric.Gauge, Help: "Sessions of datagrams that are open."},
		{Name: "slipway_gateway_datagrams_dropped_total", Type: metric.Counter, Labels: []string{"reason"}, Help: "Datagrams that were thrown away, by reason: max and max_per_client for the limits of clients, and otherwise the failure in the words of the access log."},
		{Name: "slipway_gateway_external_auth_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Questions to Services that decide who comes in (auth.external), by route and result: allowed, refused, let_in (onFailure: LetIn, without an answer that counts), error (503 without such an answer, or a request that nobody can be asked about), canceled."},
		{Name: "slipway_gateway_external_auth_duration_seconds", Type: metric.Histogram, Labels: []string{"route"}, Help: "Time that such a question took, in seconds."},
		{Name: "slipway_gateway_compression_bytes_total", Type: metric.Counter, Labels: []string{"route", "direction"}, Help: "Bytes of the bodies of responses that were compressed, by route and direction: in for what the backend sent, out for what the client got. They are counted at the end."},
		{Name: "slipway_gateway_compression_busy_total", Type: metric.Counter, Help: "Responses that were sent uncompressed because too many others were being compressed, or too many of their client or route."},
		{Name: "slipway_gateway_compression_encoders", Type: metric.Gauge, Help: "Responses that are being compressed, at most 64. Each has an encoder until it ends."},
		{Name: "slipway_gateway_oidc_logins_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Log-ins at OpenID Connect providers, by result: begun (sent to the provider), and of those that came back ok, state (not begun by this browser, or too long ago), refused (by the provider), token (the ID token is not valid), client (the provider does not take the client or its secret), unavailable (the provider gave no answer that counts), busy (too many others were under way), too_large (for cookies)."},
		{Name: "slipway_gateway_oidc_refreshes_total", Type: metric.Counter, Labels: []string{"result"}, Help: "Requests to OpenID Connect providers to renew a session, by result, in the words of the log-ins."},
		{Name: "slipway_gateway_cache_requests_total", Type: metric.Counter, Labels: []string{"route", "result"}, Help: "Requests of routes with a cache, by route and result: hit (answered by the cache), miss, stale (there was one, and the backend was asked for a newer one, or to confirm it), bypass (never answered by the cache), absent (the client wanted a stored response only, and there was none)."},
		{Name: "slipway_gateway_cache_bytes", Type: metric.Gauge, Help: "Bytes of responses that are stored, being stored or being given, with what the cache needs for itself."},
		{Name: "slipway_gateway_cache_evictions_total", Type: metric.Counter, Help: "Stored responses that were removed to make room for others."},
	}
}

// These are the results of background work.
const (
	resultOK    = "ok"
	resultError = "error"
)

// classes are the classes of status codes. The first is for values that are no status code.
var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// startingKinds are the kinds of failure that are counted from 0: those of the alerts, and the
// most frequent ones. Prometheus sees no increase in the first value of a series. Each kind costs
// a series for each route, so the others have one from the first failure.
var startingKinds = [...]upstream.Kind{upstream.Connect, upstream.Timeout, upstream.MaxRequests, upstream.MaxPending, upstream.MaxConnections}

// limitNames are the limits of connections as label values.
var limitNames = [connlimit.Refusals]string{connlimit.Total: "max", connlimit.PerClient: "max_per_client", connlimit.Unannounced: "proxy_protocol"}

type metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	checks    *prometheus.CounterVec
	retries   *prometheus.CounterVec
	exhausted *prometheus.CounterVec
	fetches   *prometheus.CounterVec
	passwords [len(verdicts)]prometheus.Counter
	dropped   prometheus.Counter
	// logins and renewals are indexed by oidc.Kind. loginBegun are those that were begun.
	logins, renewals [oidc.Kinds]prometheus.Counter
	loginBegun       prometheus.Counter
	refused          [connlimit.Refusals]prometheus.Counter // indexed by connlimit.Refusal
	streams          *streamMetrics
	datagrams        *datagramMetrics
	external         *externalMetrics
	cache            *cacheMetrics
	// compression has series only for routes that compress.
	compression     *prometheus.CounterVec
	compressionBusy prometheus.Counter

	mu       sync.Mutex
	routes   map[string]*routeMetrics
	none     *routeMetrics
	backends map[string]*checkMetrics // the checked backends, by ID
}

// routeMetrics are the metrics of a route. They are looked up only once.
type routeMetrics struct {
	name      string
	requests  [len(classes)]prometheus.Counter
	closed    prometheus.Counter // for maintenance; nil without
	duration  prometheus.Observer
	errors    map[upstream.Kind]prometheus.Counter
	retries   prometheus.Counter
	exhausted prometheus.Counter
	// These are nil if the route has never compressed.
	compressedIn, compressedOut prometheus.Counter
}

// checkMetrics are the metrics of the health checks of a backend.
type checkMetrics struct {
	labels    prometheus.Labels
	ok, error prometheus.Counter
}

// defined is what Definitions has of a metric. name is the part after slipway_gateway_.
func defined(name string) metric.Definition {
	return metric.Named(Definitions(), "slipway_gateway_"+name)
}

func newCounter(name string) *prometheus.CounterVec {
	definition := defined(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: definition.Name, Help: definition.Help}, definition.Labels)
}

func newHistogram(name string, buckets []float64) *prometheus.HistogramVec {
	definition := defined(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: definition.Name, Help: definition.Help, Buckets: buckets}, definition.Labels)
}

func newGauge(name string, value func() float64) prometheus.GaugeFunc {
	definition := defined(name)
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: definition.Name, Help: definition.Help}, value)
}

func newMetrics(registerer prometheus.Registerer, store *cache.Store) *metrics {
	m := &metrics{
		requests:  newCounter("requests_total"),
		duration:  newHistogram("request_duration_seconds", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}),
		errors:    newCounter("upstream_errors_total"),
		checks:    newCounter("health_checks_total"),
		retries:   newCounter("retries_total"),
		exhausted: newCounter("retry_budget_exhausted_total"),
		fetches:   newCounter("jwks_fetches_total"),
		routes:    map[string]*routeMetrics{},
		backends:  map[string]*checkMetrics{},
	}
	m.none = m.newRoute(noRoute)
	for _, result := range []string{resultOK, resultError} {
		m.fetches.WithLabelValues(result)
	}
	passwords := newCounter("password_checks_total")
	for verdict, name := range verdicts {
		m.passwords[verdict] = passwords.WithLabelValues(name)
	}
	dropped := newCounter("access_log_lines_dropped_total")
	m.dropped = dropped.WithLabelValues()
	refused := newCounter("connections_refused_total")
	for why, name := range limitNames {
		m.refused[why] = refused.WithLabelValues(name)
	}
	logins, renewals := newCounter("oidc_logins_total"), newCounter("oidc_refreshes_total")
	m.loginBegun = logins.WithLabelValues("begun")
	for kind := range oidc.Kinds {
		m.logins[kind], m.renewals[kind] = logins.WithLabelValues(kind.String()), renewals.WithLabelValues(kind.String())
	}
	m.streams, m.datagrams = newStreamMetrics(registerer), newDatagramMetrics(registerer)
	m.external = newExternalMetrics(registerer)
	m.cache = newCacheMetrics(registerer, store)
	m.compression = newCounter("compression_bytes_total")
	busy := newCounter("compression_busy_total")
	m.compressionBusy = busy.WithLabelValues()
	if registerer != nil {
		registerer.MustRegister(m.compression, busy)
		registerer.MustRegister(logins, renewals, passwords, dropped, refused, m.requests, m.duration, m.errors, m.checks, m.retries, m.exhausted, m.fetches)
	}
	return m
}

// watchConnections registers the number of open client connections.
func (m *metrics) watchConnections(registerer prometheus.Registerer, open func() int) {
	if registerer == nil {
		return
	}
	registerer.MustRegister(newGauge("connections", func() float64 { return float64(open()) }))
}

func (m *metrics) newRoute(name string) *routeMetrics {
	r := &routeMetrics{name: name, duration: m.duration.WithLabelValues(name)}
	if name != noRoute { // without a route no request is sent to a backend
		r.retries, r.exhausted = m.retries.WithLabelValues(name), m.exhausted.WithLabelValues(name)
		r.errors = map[upstream.Kind]prometheus.Counter{}
		for _, kind := range startingKinds {
			r.errors[kind] = m.errors.WithLabelValues(name, kind.String())
		}
	}
	for i, class := range classes {
		r.requests[i] = m.requests.WithLabelValues(name, class)
	}
	return r
}

// forRoutes returns the metrics of routes by their place. A new route with the name of an
// earlier one keeps its counts.
func (m *metrics) forRoutes(routes []*table.Route) []*routeMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*routeMetrics, len(routes))
	for i, route := range routes {
		if route.Transport != model.TransportHTTP {
			continue
		}
		known := m.routes[route.Name]
		if known == nil {
			known = m.newRoute(route.Name)
			m.routes[route.Name] = known
		}
		if route.Maintenance != nil && known.closed == nil {
			known.closed = m.requests.WithLabelValues(route.Name, failureMaintenance)
		}
		if route.Compression != nil && known.compressedIn == nil {
			known.compressedIn = m.compression.WithLabelValues(route.Name, "in")
			known.compressedOut = m.compression.WithLabelValues(route.Name, "out")
		}
		list[i] = known
	}
	return list
}

// keepRoutes removes the metrics of routes that no longer exist.
func (m *metrics) keepRoutes(routes []*table.Route) {
	m.streams.keep(routes)
	m.external.keep(routes)
	m.cache.keep(routes)
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make(map[string]bool, len(routes))
	for _, route := range routes {
		names[route.Name] = true
	}
	for name := range m.routes {
		if names[name] {
			continue
		}
		delete(m.routes, name)
		labels := prometheus.Labels{"route": name}
		m.requests.DeletePartialMatch(labels)
		m.duration.DeletePartialMatch(labels)
		m.errors.DeletePartialMatch(labels)
		m.retries.DeletePartialMatch(labels)
		m.exhausted.DeletePartialMatch(labels)
		m.compression.DeletePartialMatch(labels)
	}
}

// setChecks makes the metrics of the checked backends. It removes the metrics of backends
// that are no longer checked. Groups of rules check the same port apart, and are counted together.
func (m *metrics) setChecks(backends []*model.Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.backends
	m.backends = map[string]*checkMetrics{}
	type place struct{ service, port string }
	checked := map[place]bool{}
	for _, backend := range backends {
		if backend.HealthCheck == nil {
			continue
		}
		at := place{backend.ServiceName(), strconv.Itoa(int(backend.Port))}
		checked[at] = true
		c := known[backend.ID]
		if c == nil {
			c = &checkMetrics{
				labels: prometheus.Labels{"service": at.service, "port": at.port},
				ok:     m.checks.WithLabelValues(at.service, at.port, resultOK), error: m.checks.WithLabelValues(at.service, at.port, resultError),
			}
		}
		m.backends[backend.ID] = c
	}
	for _, gone := range known {
		if !checked[place{gone.labels["service"], gone.labels["port"]}] {
			m.checks.DeletePartialMatch(gone.labels)
		}
	}
}

// checked counts a check of a backend's endpoint.
func (m *metrics) checked(backend string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.backends[backend]
	switch {
	case c == nil: // it is not checked any more
	case err != nil:
		c.error.Inc()
	default:
		c.ok.Inc()
	}
}

func (m *metrics) of(s *state, route *table.Route) *routeMetrics {
	if s == nil || route == nil {
		return m.none
	}
	return s.metrics[route.Place]
}

// observe counts an answer. What was planned is no error of the server: nobody is to be called for it.
func (m *metrics) observe(s *state, route *table.Route, status int, failure string, duration time.Duration) {
	r := m.of(s, route)
	class := status / 100
	if class >= len(classes) {
		class = 0
	}
	if failure == failureMaintenance {
		r.closed.Inc()
	} else {
		r.requests[class].Inc()
	}
	r.duration.Observe(duration.Seconds())
}

// failed counts a request without a response. The counters of a route that no longer exists
// are not exported any more.
func (m *metrics) failed(s *state, route *table.Route, kind upstream.Kind) {
	r := m.of(s, route)
	if counter := r.errors[kind]; counter != nil {
		counter.Inc()
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.routes[r.name] == r {
		m.errors.WithLabelValues(r.name, kind.String()).Inc()
	}
}

// retried counts how often a request was sent again, and whether the retry budget stopped
// it.
func (m *metrics) retried(s *state, route *table.Route, request *upstream.Request) {
	r := m.of(s, route)
	r.retries.Add(float64(request.Resent()))
	if request.BudgetExhausted() {
		r.exhausted.Inc()
	}
}

// fetched counts a fetch of public keys.
func (m *metrics) fetched(err error) {
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.fetches.WithLabelValues(result).Inc()
}

// renewed counts a request to a provider to renew a session.
func (m *metrics) renewed(kind oidc.Kind) { m.renewals[kind].Inc() }
