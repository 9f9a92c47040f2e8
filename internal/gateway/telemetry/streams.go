package telemetry

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"
)

// streamMetrics count what is forwarded without being read as HTTP.
type streamMetrics struct {
	*RouteSeries

	ended *prometheus.CounterVec
	bytes *prometheus.CounterVec
}

func newStreamMetrics(registerer prometheus.Registerer) *streamMetrics {
	m := &streamMetrics{ended: NewCounter("streams_total"), bytes: NewCounter("stream_bytes_total")}
	m.RouteSeries = NewRouteSeries(nil, m.ended, m.bytes)
	Register(registerer, m.ended, m.bytes)
	return m
}

// KeepStreams removes the series of all other routes for connections and datagrams.
func (m *Metrics) KeepStreams(routes map[string]bool) { m.streams.Keep(routes) }

// StreamEnded counts a connection or a session that has ended.
func (m *Metrics) StreamEnded(of *StreamLine) {
	result := cmp.Or(of.Failure, ResultOK)
	if of.Route == "" {
		m.streams.ended.WithLabelValues(noRoute, result).Inc()
		return
	}
	m.streams.Count(of.Route, func() {
		m.streams.ended.WithLabelValues(of.Route, result).Inc()
		m.streams.bytes.WithLabelValues(of.Route, "received").Add(float64(of.Received))
		m.streams.bytes.WithLabelValues(of.Route, "sent").Add(float64(of.Sent))
	})
}
