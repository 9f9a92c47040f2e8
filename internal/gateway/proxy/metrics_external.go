package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// externalMetrics count what Services that are asked about requests answer.
type externalMetrics struct {
	routeSeries

	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newExternalMetrics(registerer prometheus.Registerer) *externalMetrics {
	m := &externalMetrics{
		results:  newCounter("external_auth_total"),
		duration: newHistogram("external_auth_duration_seconds", []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}),
	}
	m.has, m.vecs = func(route *table.Route) bool { return route.Auth != nil && route.Auth.External != nil }, []partial{m.results, m.duration}
	m.add = func(route string) {
		for result := range externalResults {
			m.results.WithLabelValues(route, result.String())
		}
	}
	if registerer != nil {
		registerer.MustRegister(m.results, m.duration)
	}
	return m
}

// asked counts an answer.
func (m *externalMetrics) asked(route *table.Route, result externalResult, took time.Duration) {
	m.count(route, func() {
		m.results.WithLabelValues(route.Name, result.String()).Inc()
		m.duration.WithLabelValues(route.Name).Observe(took.Seconds())
	})
}
