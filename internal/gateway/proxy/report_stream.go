package proxy

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
)

// reportRelay logs and counts a connection.
func (h *Handler) reportRelay(r *relay) {
	h.reportStream(r.state, r.route, &telemetry.StreamLine{
		Protocol: string(r.transport), Start: r.start, Host: r.name, Client: r.client,
		Endpoint: r.endpoint, Failure: r.failure, Received: r.received, Sent: r.sent,
	})
}

// reportSession logs and counts a session.
func (h *Handler) reportSession(s *session) {
	of, line := s.of.Load(), &telemetry.StreamLine{
		Protocol: string(model.TransportUDP), Start: s.start, Client: s.client.Addr().Unmap(), Endpoint: s.endpoint,
		Received: s.received.Load(), Sent: s.sent.Load(),
	}
	if failure := s.failure.Load(); failure != nil {
		line.Failure = *failure
	}
	h.reportStream(of.state, of.route, line)
}

func (h *Handler) reportStream(s *state, route *table.Route, line *telemetry.StreamLine) {
	percent := uint32(100)
	if s != nil {
		percent = s.LogPercent
	}
	if route != nil {
		line.Route = route.Name
	}
	line.Duration = h.options.Clock.Since(line.Start)
	h.metrics.StreamEnded(line)
	h.log.WriteStream(line, percent)
}
