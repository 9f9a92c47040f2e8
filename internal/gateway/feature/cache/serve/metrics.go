package serve

import (
	"github.com/prometheus/client_golang/prometheus"

	cachestore "github.com/slipway-dev/slipway/internal/gateway/feature/cache/store"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// metrics count what the cache says of requests.
type metrics struct {
	*telemetry.RouteSeries

	results *prometheus.CounterVec
}

// newMetrics also registers how much the cache keeps.
func newMetrics(registerer prometheus.Registerer, store *cachestore.Store) *metrics {
	m := &metrics{results: telemetry.NewCounter("cache_requests_total")}
	m.RouteSeries = telemetry.NewRouteSeries(func(route string) {
		for result := range cachestore.Results {
			m.results.WithLabelValues(route, result.String())
		}
	}, m.results)
	telemetry.Register(registerer, m.results,
		telemetry.NewGauge("cache_bytes", func() float64 { return float64(store.Use().Bytes) }),
		telemetry.NewCounterFunc("cache_evictions_total", func() float64 { return float64(store.Use().Evicted) }),
	)
	return m
}

// answered counts a request.
func (m *metrics) answered(route string, result cachestore.Result) {
	m.Count(route, func() { m.results.WithLabelValues(route, result.String()).Inc() })
}
