package telemetry

import (
	"net/netip"
	"time"
)

// StreamLine is what is logged of a connection or a session of datagrams that has ended.
type StreamLine struct {
	Start    time.Time
	Duration time.Duration
	Protocol string
	Host     string // that the client has asked for with TLS; empty without
	Route    string // empty: there was none
	Client   netip.Addr
	Endpoint string // empty: none was asked
	Failure  string // empty: there was none
	Received int64  // bytes from the client
	Sent     int64  // bytes to the client
}

// WriteStream writes a line. percent is how many of them are written. Failures always are, except at 0.
func (l *Log) WriteStream(of *StreamLine, percent uint32) {
	if l.out == nil || !isSampled(percent, of.Failure != "") {
		return
	}
	l.append(func(b []byte) []byte { return l.appendStream(b, of) })
}

func (l *Log) appendStream(b []byte, of *StreamLine) []byte {
	b = append(b, `{"time":"`...)
	b = of.Start.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = appendText(b, "protocol", of.Protocol)
	b = appendGiven(b, "host", of.Host)
	b = appendGiven(b, "gateway", l.gateway)
	b = appendGiven(b, "route", of.Route)
	b = appendNumber(b, "received", of.Received)
	b = appendNumber(b, "bytes", of.Sent)
	b = appendNumber(b, "duration_us", of.Duration.Microseconds())
	b = appendText(b, "client", of.Client.String())
	b = appendGiven(b, "upstream", of.Endpoint)
	b = appendGiven(b, "failure", of.Failure)
	return append(b, '}', '\n')
}
