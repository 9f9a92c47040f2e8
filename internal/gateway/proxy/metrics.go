package proxy

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
	"github.com/slipway-dev/slipway/internal/metric"
)

// noRoute is the label of requests that match no route. No route can have it as a name.
const noRoute = "-"

// Definitions describes the metrics. Their labels are bounded by the routes of the
// table: nothing that a client sends becomes a label.
func Definitions() []metric.Definition {
	return []metric.Definition{
		{Name: "slipway_gateway_requests_total", Type: metric.Counter, Labels: []string{"route", "status"}, Help: "Requests answered, by route and class of status; route - where none matched."},
		{Name: "slipway_gateway_request_duration_seconds", Type: metric.Histogram, Labels: []string{"route"}, Help: "Time from the arrival of a request to the end of its response, in seconds."},
		{Name: "slipway_gateway_upstream_errors_total", Type: metric.Counter, Labels: []string{"route", "kind"}, Help: "Requests that got no response from their backend, by what went wrong."},
	}
}

// classes are the classes of status, with what no status has in front.
var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	errors   *prometheus.CounterVec

	mu     sync.Mutex
	routes map[string]*routeMetrics
	none   *routeMetrics
}

// routeMetrics are the metrics of a route, looked up once.
type routeMetrics struct {
	name     string
	requests [len(classes)]prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	definitions := Definitions()
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: definitions[0].Name, Help: definitions[0].Help}, definitions[0].Labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: definitions[1].Name, Help: definitions[1].Help,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, definitions[1].Labels),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: definitions[2].Name, Help: definitions[2].Help}, definitions[2].Labels),
		routes: map[string]*routeMetrics{},
	}
	m.none = m.newRoute(noRoute)
	if registerer != nil {
		registerer.MustRegister(m.requests, m.duration, m.errors)
	}
	return m
}

func (m *metrics) newRoute(name string) *routeMetrics {
	r := &routeMetrics{name: name, duration: m.duration.WithLabelValues(name)}
	for i, class := range classes {
		r.requests[i] = m.requests.WithLabelValues(name, class)
	}
	return r
}

// forRoutes returns the metrics of routes by their index. A route of the same name as
// one before goes on counting.
func (m *metrics) forRoutes(routes []*table.Route) []*routeMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []*routeMetrics
	for _, route := range routes {
		for len(list) <= route.Index {
			list = append(list, m.none)
		}
		known := m.routes[route.Name]
		if known == nil {
			known = m.newRoute(route.Name)
			m.routes[route.Name] = known
		}
		list[route.Index] = known
	}
	return list
}

// keepRoutes drops the metrics of routes that are no more.
func (m *metrics) keepRoutes(routes []*table.Route) {
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
	}
}

func (m *metrics) of(s *state, route *table.Route) *routeMetrics {
	if s == nil || route == nil {
		return m.none
	}
	return s.metrics[route.Index]
}

func (m *metrics) observe(s *state, route *table.Route, status int, duration time.Duration) {
	r := m.of(s, route)
	class := status / 100
	if class >= len(classes) {
		class = 0
	}
	r.requests[class].Inc()
	r.duration.Observe(duration.Seconds())
}

func (m *metrics) failed(s *state, route *table.Route, kind upstream.Kind) {
	m.errors.WithLabelValues(m.of(s, route).name, kind.String()).Inc()
}
