package proxy

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// cacheMetrics count what the cache says of requests.
type cacheMetrics struct {
	routeSeries

	results *prometheus.CounterVec
}

// newCacheMetrics also registers how much the cache keeps.
func newCacheMetrics(registerer prometheus.Registerer, store *cache.Store) *cacheMetrics {
	m := &cacheMetrics{results: newCounter("cache_requests_total")}
	m.has, m.vecs = func(route *table.Route) bool { return route.Cache != nil }, []partial{m.results}
	m.add = func(route string) {
		for result := range cache.Results {
			m.results.WithLabelValues(route, result.String())
		}
	}
	if registerer == nil {
		return m
	}
	evictions := defined("cache_evictions_total")
	registerer.MustRegister(m.results,
		newGauge("cache_bytes", func() float64 { return float64(store.Use().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: evictions.Name, Help: evictions.Help}, func() float64 { return float64(store.Use().Evicted) }),
	)
	return m
}

// answered counts a request.
func (m *cacheMetrics) answered(route *table.Route, result cache.Result) {
	m.count(route, func() { m.results.WithLabelValues(route.Name, result.String()).Inc() })
}
