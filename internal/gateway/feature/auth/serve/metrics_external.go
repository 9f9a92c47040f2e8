package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// externalMetrics count what Services that are asked about requests answer.
type externalMetrics struct {
	*telemetry.RouteSeries

	results  *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newExternalMetrics(registerer prometheus.Registerer) *externalMetrics {
	m := &externalMetrics{
		results: telemetry.NewCounter("external_auth_total"),
		duration: telemetry.NewHistogram("external_auth_duration_seconds",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}),
	}
	m.RouteSeries = telemetry.NewRouteSeries(func(route string) {
		for result := range externalResults {
			m.results.WithLabelValues(route, result.String())
		}
	}, m.results, m.duration)
	telemetry.Register(registerer, m.results, m.duration)
	return m
}

// asked counts an answer.
func (m *externalMetrics) asked(route string, result externalResult, took time.Duration) {
	m.Count(route, func() {
		m.results.WithLabelValues(route, result.String()).Inc()
		m.duration.WithLabelValues(route).Observe(took.Seconds())
	})
}
