package proxy

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// streamEntry is what is told of a connection or a session that has ended.
type streamEntry struct {
	state    *state
	protocol string
	start    time.Time
	name     string
	route    *table.Route
	client   netip.Addr
	endpoint string
	failure  string
	received int64
	sent     int64
}

// reportRelay logs and counts a connection.
func (h *Handler) reportRelay(r *relay) {
	h.reportStream(&streamEntry{
		state: r.state, protocol: string(r.transport), start: r.start, name: r.name, route: r.route, client: r.client,
		endpoint: r.endpoint, failure: r.failure, received: r.received, sent: r.sent,
	})
}

// reportSession logs and counts a session.
func (h *Handler) reportSession(s *session) {
	of, e := s.of.Load(), &streamEntry{
		protocol: string(model.TransportUDP), start: s.start, client: s.client.Addr().Unmap(), endpoint: s.endpoint,
		received: s.received.Load(), sent: s.sent.Load(),
	}
	e.state, e.route = of.state, of.route
	if failure := s.failure.Load(); failure != nil {
		e.failure = *failure
	}
	h.reportStream(e)
}

func (h *Handler) reportStream(e *streamEntry) {
	h.metrics.streams.finished(e)
	h.log.writeStream(e, h.options.Gateway, h.options.Clock.Since(e.start))
}

func (l *accessLog) writeStream(e *streamEntry, gateway string, duration time.Duration) {
	if l.out == nil || !e.sampled() {
		return
	}
	l.append(func(b []byte) []byte { return appendStream(b, e, gateway, duration) })
}

// sampled reports whether it is logged. Failures are, except at 0.
func (e *streamEntry) sampled() bool {
	if e.state == nil || e.state.LogPercent >= 100 {
		return true
	}
	if e.state.LogPercent == 0 {
		return false
	}
	return e.failure != "" || rand.Uint32N(100) < e.state.LogPercent
}

func appendStream(b []byte, e *streamEntry, gateway string, duration time.Duration) []byte {
	b = append(b, `{"time":"`...)
	b = e.start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "protocol", e.protocol)
	if e.name != "" {
		b = appendText(b, "host", e.name)
	}
	if gateway != "" {
		b = appendText(b, "gateway", gateway)
	}
	if e.route != nil {
		b = appendText(b, "route", e.route.Name)
	}
	b = appendNumber(b, "received", e.received)
	b = appendNumber(b, "bytes", e.sent)
	b = appendNumber(b, "duration_us", duration.Microseconds())
	b = appendText(b, "client", e.client.String())
	if e.endpoint != "" {
		b = appendText(b, "upstream", e.endpoint)
	}
	if e.failure != "" {
		b = appendText(b, "failure", e.failure)
	}
	return append(b, '}', '\n')
}
