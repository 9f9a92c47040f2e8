package telemetry

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/connlimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// noRoute is the label value for requests without a route. No route can have this name.
const noRoute = "-"

// These are the results of background work.
const (
	ResultOK    = "ok"
	ResultError = "error"
)

// classes are the classes of status codes. The first is for values that are no status code.
var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// startingKinds are the kinds of failure that are counted from 0: those of the alerts, and the
// most frequent ones. Prometheus sees no increase in the first value of a series. Each kind costs
// a series for each route, so the others have one from the first failure.
var startingKinds = [...]upstream.Kind{upstream.Connect, upstream.Timeout, upstream.MaxRequests, upstream.MaxPending, upstream.MaxConnections}

// limitNames are the limits of connections as label values.
var limitNames = [connlimit.Refusals]string{connlimit.Total: "max", connlimit.PerClient: "max_per_client", connlimit.Unannounced: "proxy_protocol"}

// Metrics are those of requests and connections. What only some features count is theirs.
type Metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	errors    *prometheus.CounterVec
	checks    *prometheus.CounterVec
	retries   *prometheus.CounterVec
	exhausted *prometheus.CounterVec
	dropped   prometheus.Counter
	refused   [connlimit.Refusals]prometheus.Counter // indexed by connlimit.Refusal
	datagrams *prometheus.CounterVec
	streams   *streamMetrics

	mu       sync.Mutex
	routes   map[string]*Route
	none     *Route
	backends map[string]*checkMetrics // the checked backends, by ID
}

// Route are the metrics of requests of a route. They are looked up only once.
type Route struct {
	metrics   *Metrics
	name      string
	requests  [len(classes)]prometheus.Counter
	planned   prometheus.Counter // of answers that are no errors; nil without
	duration  prometheus.Observer
	errors    map[upstream.Kind]prometheus.Counter
	retries   prometheus.Counter
	exhausted prometheus.Counter
}

// checkMetrics are the metrics of the health checks of a backend.
type checkMetrics struct {
	labels    prometheus.Labels
	ok, error prometheus.Counter
}

// New returns metrics that are registered. Without a registerer they are only counted.
func New(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests:  NewCounter("requests_total"),
		duration:  NewHistogram("request_duration_seconds", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60}),
		errors:    NewCounter("upstream_errors_total"),
		checks:    NewCounter("health_checks_total"),
		retries:   NewCounter("retries_total"),
		exhausted: NewCounter("retry_budget_exhausted_total"),
		datagrams: NewCounter("datagrams_dropped_total"),
		streams:   newStreamMetrics(registerer),
		routes:    map[string]*Route{},
		backends:  map[string]*checkMetrics{},
	}
	m.none = m.newRoute(noRoute)
	dropped := NewCounter("access_log_lines_dropped_total")
	m.dropped = dropped.WithLabelValues()
	refused := NewCounter("connections_refused_total")
	for why, name := range limitNames {
		m.refused[why] = refused.WithLabelValues(name)
	}
	Register(registerer, dropped, refused, m.requests, m.duration, m.errors, m.checks, m.retries, m.exhausted, m.datagrams)
	return m
}

// WatchConnections registers the number of open client connections, and that of sessions of datagrams.
func WatchConnections(registerer prometheus.Registerer, open, sessions func() int) {
	Register(registerer,
		NewGauge("connections", func() float64 { return float64(open()) }),
		NewGauge("datagram_sessions", func() float64 { return float64(sessions()) }))
}

// LinesDropped counts lines of the access log that are lost.
func (m *Metrics) LinesDropped(lines int) { m.dropped.Add(float64(lines)) }

// ConnectionRefused counts a connection that a limit has closed.
func (m *Metrics) ConnectionRefused(why connlimit.Refusal) { m.refused[why].Inc() }

// SessionRefused counts a datagram for which a limit lets no session begin.
func (m *Metrics) SessionRefused(why connlimit.Refusal) { m.DatagramDropped(limitNames[why]) }

// DatagramDropped counts a datagram that is thrown away.
func (m *Metrics) DatagramDropped(reason string) { m.datagrams.WithLabelValues(reason).Inc() }

func (m *Metrics) newRoute(name string) *Route {
	r := &Route{metrics: m, name: name, duration: m.duration.WithLabelValues(name)}
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

// NoRoute returns the metrics of requests that have no route.
func (m *Metrics) NoRoute() *Route { return m.none }

// Route returns the metrics of a route. A new route with the name of an earlier one keeps its counts. planned is the status of answers
// that were planned. Empty: there are none.
func (m *Metrics) Route(name, planned string) *Route {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.routes[name]
	if known == nil {
		known = m.newRoute(name)
		m.routes[name] = known
	}
	if planned != "" && known.planned == nil {
		known.planned = m.requests.WithLabelValues(name, planned)
	}
	return known
}

// Keep removes the metrics of all other routes.
func (m *Metrics) Keep(routes map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.routes {
		if routes[name] {
			continue
		}
		delete(m.routes, name)
		labels := prometheus.Labels{"route": name}
		m.requests.DeletePartialMatch(labels)
		m.duration.DeletePartialMatch(labels)
		m.errors.DeletePartialMatch(labels)
		m.retries.DeletePartialMatch(labels)
		m.exhausted.DeletePartialMatch(labels)
	}
}

// SetChecks makes the metrics of the checked backends. It removes the metrics of backends
// that are no longer checked. Groups of rules check the same port apart, and are counted together.
func (m *Metrics) SetChecks(backends []*model.Backend) {
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
				ok:     m.checks.WithLabelValues(at.service, at.port, ResultOK), error: m.checks.WithLabelValues(at.service, at.port, ResultError),
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

// Checked counts a check of a backend's endpoint.
func (m *Metrics) Checked(backend string, err error) {
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

// Observe counts an answer. What was planned is no error of the server: nobody is to be called for it.
func (r *Route) Observe(status int, planned bool, duration time.Duration) {
	class := status / 100
	if class >= len(classes) {
		class = 0
	}
	if planned {
		r.planned.Inc()
	} else {
		r.requests[class].Inc()
	}
	r.duration.Observe(duration.Seconds())
}

// Failed counts a request without a response. The counters of a route that no longer exists
// are not exported any more.
func (r *Route) Failed(kind upstream.Kind) {
	if counter := r.errors[kind]; counter != nil {
		counter.Inc()
		return
	}
	r.metrics.mu.Lock()
	defer r.metrics.mu.Unlock()
	if r.metrics.routes[r.name] == r {
		r.metrics.errors.WithLabelValues(r.name, kind.String()).Inc()
	}
}

// Retried counts how often a request was sent again, and whether the retry budget stopped
// it.
func (r *Route) Retried(request *upstream.Request) {
	r.retries.Add(float64(request.Resent()))
	if request.BudgetExhausted() {
		r.exhausted.Inc()
	}
}
