package serve

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// metrics count bytes before and after compression.
type metrics struct {
	bytes *prometheus.CounterVec
	busy  prometheus.Counter

	mu     sync.Mutex
	routes map[string]*compressedBytes // that have compressed
}

// compressedBytes are the bytes of a route.
type compressedBytes struct{ in, out prometheus.Counter }

// newMetrics also registers the number of encoders in use.
func newMetrics(registerer prometheus.Registerer, inUse func() int) *metrics {
	m := &metrics{bytes: telemetry.NewCounter("compression_bytes_total"), routes: map[string]*compressedBytes{}}
	busy := telemetry.NewCounter("compression_busy_total")
	m.busy = busy.WithLabelValues()
	telemetry.Register(registerer, m.bytes, busy, telemetry.NewGauge("compression_encoders", func() float64 { return float64(inUse()) }))
	return m
}

// of returns the metrics of a route that compresses.
func (m *metrics) of(route string) *compressedBytes {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.routes[route]
	if known == nil {
		known = &compressedBytes{m.bytes.WithLabelValues(route, "in"), m.bytes.WithLabelValues(route, "out")}
		m.routes[route] = known
	}
	return known
}

// keep removes the metrics of all other routes. A route that compresses no more keeps its counts.
func (m *metrics) keep(routes map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.routes {
		if !routes[name] {
			delete(m.routes, name)
			m.bytes.DeletePartialMatch(prometheus.Labels{"route": name})
		}
	}
}
