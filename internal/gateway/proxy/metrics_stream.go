package proxy

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// streamMetrics count what is forwarded without being read as HTTP.
type streamMetrics struct {
	routeSeries

	ended *prometheus.CounterVec
	bytes *prometheus.CounterVec
}

func newStreamMetrics(registerer prometheus.Registerer) *streamMetrics {
	m := &streamMetrics{ended: newCounter("streams_total"), bytes: newCounter("stream_bytes_total")}
	m.has, m.vecs = func(route *table.Route) bool { return route.Transport != model.TransportHTTP }, []partial{m.ended, m.bytes}
	if registerer != nil {
		registerer.MustRegister(m.ended, m.bytes)
	}
	return m
}

// finished counts a connection or a session that has ended.
func (m *streamMetrics) finished(e *streamEntry) {
	result := cmp.Or(e.failure, resultOK)
	if e.route == nil {
		m.ended.WithLabelValues(noRoute, result).Inc()
		return
	}
	m.count(e.route, func() {
		m.ended.WithLabelValues(e.route.Name, result).Inc()
		m.bytes.WithLabelValues(e.route.Name, "received").Add(float64(e.received))
		m.bytes.WithLabelValues(e.route.Name, "sent").Add(float64(e.sent))
	})
}

// datagramMetrics count datagrams that are thrown away.
type datagramMetrics struct{ dropped *prometheus.CounterVec }

func newDatagramMetrics(registerer prometheus.Registerer) *datagramMetrics {
	m := &datagramMetrics{dropped: newCounter("datagrams_dropped_total")}
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
	registerer.MustRegister(newGauge("datagram_sessions", func() float64 { return float64(open()) }))
}
