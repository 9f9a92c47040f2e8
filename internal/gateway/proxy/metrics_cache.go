package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/cache"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/kit/metric"
)

// cacheMetrics count what the cache says of requests. The series of a route are there as long as it has a cache.
type cacheMetrics struct {
	results *prometheus.CounterVec

	mu    sync.Mutex
	known map[string]bool // routes of the table with a cache
}

// newCacheMetrics also registers how much the cache keeps.
func newCacheMetrics(registerer prometheus.Registerer, definitions []metric.Definition, store *cache.Store) *cacheMetrics {
	m := &cacheMetrics{results: newCounter(definitions[0]), known: map[string]bool{}}
	if registerer == nil {
		return m
	}
	registerer.MustRegister(m.results,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: definitions[1].Name, Help: definitions[1].Help}, func() float64 { return float64(store.Use().Bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: definitions[2].Name, Help: definitions[2].Help}, func() float64 { return float64(store.Use().Evicted) }),
	)
	return m
}

// keep adds the series of routes with a cache, and removes those of the others.
func (m *cacheMetrics) keep(routes []*table.Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.known
	m.known = map[string]bool{}
	for _, route := range routes {
		if route.Cache == nil || m.known[route.Name] {
			continue
		}
		m.known[route.Name] = true
		for result := range cache.Results {
			m.results.WithLabelValues(route.Name, result.String())
		}
	}
	for name := range before {
		if !m.known[name] {
			m.results.DeletePartialMatch(prometheus.Labels{"route": name})
		}
	}
}

// count counts a request. That of a route that is no longer there is not exported.
func (m *cacheMetrics) count(route *table.Route, result cache.Result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[route.Name] {
		m.results.WithLabelValues(route.Name, result.String()).Inc()
	}
}
