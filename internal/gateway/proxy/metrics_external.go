package proxy

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/kit/metric"
)

// externalMetrics count what Services that are asked about requests answer. The series of a route are there as long as it asks.
type externalMetrics struct {
	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec

	mu    sync.Mutex
	known map[string]bool // routes of the table that ask
}

func newExternalMetrics(registerer prometheus.Registerer, results, duration metric.Definition) *externalMetrics {
	m := &externalMetrics{
		results: newCounter(results), known: map[string]bool{},
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: duration.Name, Help: duration.Help, Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, duration.Labels),
	}
	if registerer != nil {
		registerer.MustRegister(m.results, m.duration)
	}
	return m
}

// keep adds the series of routes that ask, and removes those of the others.
func (m *externalMetrics) keep(routes []*table.Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.known
	m.known = map[string]bool{}
	for _, route := range routes {
		if route.Auth == nil || route.Auth.External == nil || m.known[route.Name] {
			continue
		}
		m.known[route.Name] = true
		for result := range externalResults {
			m.results.WithLabelValues(route.Name, result.String())
		}
	}
	for name := range before {
		if !m.known[name] {
			labels := prometheus.Labels{"route": name}
			m.results.DeletePartialMatch(labels)
			m.duration.DeletePartialMatch(labels)
		}
	}
}

// asked counts an answer. That for a route that is no longer there is not exported.
func (m *externalMetrics) asked(route *table.Route, result externalResult, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[route.Name] {
		m.results.WithLabelValues(route.Name, result.String()).Inc()
		m.duration.WithLabelValues(route.Name).Observe(took.Seconds())
	}
}
