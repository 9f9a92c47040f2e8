package proxy

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/kit/metric"
)

// streamMetrics count what is forwarded without being read as HTTP. The series of a route are there as long as it is.
type streamMetrics struct {
	ended *prometheus.CounterVec
	bytes *prometheus.CounterVec

	mu    sync.Mutex
	known map[string]bool // routes of the table
}

func newStreamMetrics(registerer prometheus.Registerer, ended, bytes metric.Definition) *streamMetrics {
	m := &streamMetrics{ended: newCounter(ended), bytes: newCounter(bytes), known: map[string]bool{}}
	if registerer != nil {
		registerer.MustRegister(m.ended, m.bytes)
	}
	return m
}

// keep removes the series of routes that are no longer there.
func (m *streamMetrics) keep(routes []*table.Route) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.known
	m.known = map[string]bool{}
	for _, route := range routes {
		if route.Transport != table.TransportHTTP {
			m.known[route.Name] = true
		}
	}
	for name := range before {
		if !m.known[name] {
			labels := prometheus.Labels{"route": name}
			m.ended.DeletePartialMatch(labels)
			m.bytes.DeletePartialMatch(labels)
		}
	}
}

// count counts a connection or a session that has ended. One of a route that is no longer there is not exported.
func (m *streamMetrics) count(e *streamEntry) {
	name := noRoute
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.route != nil {
		name = e.route.Name
		if !m.known[name] {
			return
		}
	}
	result := e.failure
	if result == "" {
		result = resultOK
	}
	m.ended.WithLabelValues(name, result).Inc()
	if e.route != nil {
		m.bytes.WithLabelValues(name, "received").Add(float64(e.received))
		m.bytes.WithLabelValues(name, "sent").Add(float64(e.sent))
	}
}

// datagramMetrics count datagrams that are thrown away.
type datagramMetrics struct{ dropped *prometheus.CounterVec }

func newDatagramMetrics(registerer prometheus.Registerer, dropped metric.Definition) *datagramMetrics {
	m := &datagramMetrics{dropped: newCounter(dropped)}
	if registerer != nil {
		registerer.MustRegister(m.dropped)
	}
	return m
}

func (m *datagramMetrics) drop(reason string) { m.dropped.WithLabelValues(reason).Inc() }

// watchSessions registers the number of sessions of datagrams.
func (m *metrics) watchSessions(registerer prometheus.Registerer, open func() int) {
	if registerer == nil {
		return
	}
	definition := Definitions()[13]
	registerer.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: definition.Name, Help: definition.Help}, func() float64 { return float64(open()) },
	))
}
