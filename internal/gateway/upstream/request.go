package upstream

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Field is one line of a header or trailer section.
type Field struct {
	Name  string
	Value string
}

// Protocol is the protocol of an endpoint.
type Protocol int

// The protocols.
const (
	// HTTP1 is HTTP/1.1.
	HTTP1 Protocol = iota
	// HTTP2 is HTTP/2: over TLS when the Service has TLS, otherwise with prior
	// knowledge (h2c).
	HTTP2
	// Stream means that nothing is known of the protocol: Service.Connect and Begin are for it.
	Stream
)

// Request is a request to a Service. It must not be changed until the response is closed.
type Request struct {
	// Client is the client, as clients.Of defines it, for its share of the limits. The zero
	// Addr means no particular client.
	Client netip.Addr
	// Affinity says which endpoint should get it. The zero value leaves that to the load.
	Affinity Affinity
	// Protocol is the protocol of the endpoint.
	Protocol Protocol
	// Method is the method.
	Method string
	// Target is the request target in origin form (/path?query), or "*".
	Target string
	// Host is the host of the request.
	Host string
	// Fields are the end-to-end fields. The sender writes Host, the framing and all fields
	// of the connection itself (see fieldname.OfConnection). In Fields they are refused.
	Fields []Field
	// Upgrade is the protocol to switch to. Empty: none.
	Upgrade string
	// AcceptTrailers tells the endpoint that trailers are forwarded (TE: trailers).
	AcceptTrailers bool

	// Body is the body, nil for none.
	Body io.Reader
	// ContentLength is the length of Body, or -1 if it is unknown.
	ContentLength int64
	// Trailers returns the trailers once Body has ended. Before that it returns the names
	// that are known, without values. Optional.
	Trailers func() []Field
	// StopBody makes a running Read of Body return. It is called when the response is
	// closed before the whole body was sent. Required with a Body.
	StopBody func()
	// ClientGone reports whether nobody waits for the response any more, where the context does not tell. It is asked while the endpoint
	// does not read Body, and does not wait. Optional.
	ClientGone func() bool
	// ExpectContinue waits for 100 Continue before it reads the body.
	ExpectContinue bool

	// Informational is called for 1xx responses other than 100 and 101, for one at a time and before Do returns. Those that come
	// faster than it returns may be left out. Optional.
	Informational func(status int, fields []Field)

	// Deadline is when the response must have been read completely. Zero: no deadline.
	Deadline time.Time
	// HeaderTimeout bounds, for each attempt, the wait for the head of the response after
	// the request was sent. Zero: no bound.
	HeaderTimeout time.Duration
	// AttemptTimeout bounds each attempt, from when the request is sent to the end of the response. Zero: no bound.
	AttemptTimeout time.Duration
	// IdleTimeout bounds the wait for each further part of the response's body. It does not
	// apply to a stream. Zero: no bound.
	IdleTimeout time.Duration
	// Patient tells that the endpoint may pause while it reads the request, within Deadline and AttemptTimeout. Without it,
	// Options.SendTimeout bounds each pause.
	Patient bool
	// Retry defines which requests are retried, besides those that are always safe to
	// retry.
	Retry Retry

	replay   []byte       // the whole body, if it was read in advance
	opened   bool         // a byte of the body may have been read
	streamed *http2Source // the body, for attempts over HTTP/2; nil before the first one, or without it

	search search // for a connection

	resent          int // how often the request was sent again
	budgetExhausted bool
	waited          bool // it has waited for a connection
}

// Resent returns how often the request was sent again. Valid after Service.Do.
func (r *Request) Resent() int { return r.resent }

// Waited reports whether the request has waited for a connection because of the limits. Valid after Service.Do.
func (r *Request) Waited() bool { return r.waited }

// BudgetExhausted reports whether one more retry was not sent, because the Service had used
// up its retry budget.
func (r *Request) BudgetExhausted() bool { return r.budgetExhausted }

// Retry defines which failed requests are sent again. After a failure to connect, nothing
// was sent, so every request may be. Otherwise it applies only to idempotent methods with a
// body small enough to be kept. In addition, a request is always sent again in two cases:
// the endpoint cannot have processed it, or the endpoint closed a kept connection when the
// request was sent.
type Retry struct {
	// Attempts bounds how many times a request is sent again.
	Attempts int
	// On are the causes for which a request is sent again.
	On model.Causes
	// OnStatus reports whether a request is sent again for the status of its response. It
	// counts besides On. Optional.
	OnStatus func(status int) bool
	// Wait is the shortest time before a request is sent again.
	Wait time.Duration
}

// causeOf returns the cause for a status, or 0.
func causeOf(status int) model.Causes {
	switch status {
	case 502:
		return model.OnStatus502
	case 503:
		return model.OnStatus503
	case 504:
		return model.OnStatus504
	}
	return 0
}

// MaxReplay is the size up to which a body is read before it is sent. Then it can be sent
// again, and is sent together with the head.
const MaxReplay = 16 << 10

var errHeadInvalid = errors.New("the request has an invalid")

// appendHead appends the head of the request as HTTP/1.1. It refuses everything that an
// endpoint could read as something else, wherever it came from.
func (r *Request) appendHead(b []byte) ([]byte, error) {
	if !isToken(r.Method) {
		return b, fmt.Errorf("%w method", errHeadInvalid)
	}
	if !isTarget(r.Target) {
		return b, fmt.Errorf("%w target", errHeadInvalid)
	}
	if r.Host != "" && !isVisible(r.Host) {
		return b, fmt.Errorf("%w host", errHeadInvalid)
	}
	b = append(b, r.Method...)
	b = append(b, ' ')
	b = append(b, r.Target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, r.Host...)
	b = append(b, '\r', '\n')
	for i := range r.Fields {
		field := &r.Fields[i]
		if err := field.checkSendable(); err != nil {
			return b, err
		}
		b = appendField(b, field.Name, field.Value)
	}
	b, err := r.appendConnection(b)
	if err != nil {
		return b, err
	}
	b = r.appendFraming(b)
	return append(b, '\r', '\n'), nil
}

func (f *Field) checkSendable() error {
	if !isToken(f.Name) || fieldname.OfConnection(f.Name) {
		return fmt.Errorf("%w field %q", errHeadInvalid, f.Name)
	}
	if !isFieldValue(f.Value) {
		return fmt.Errorf("%w value of field %s", errHeadInvalid, f.Name)
	}
	return nil
}

func (r *Request) appendConnection(b []byte) ([]byte, error) {
	if r.Upgrade != "" {
		if !isFieldValue(r.Upgrade) {
			return b, fmt.Errorf("%w value of field Upgrade", errHeadInvalid)
		}
		b = append(b, "Connection: Upgrade\r\n"...)
		return appendField(b, "Upgrade", r.Upgrade), nil
	}
	if r.AcceptTrailers {
		b = append(b, "Connection: TE\r\nTE: trailers\r\n"...)
	}
	return b, nil
}

func (r *Request) appendFraming(b []byte) []byte {
	switch {
	case !r.hasBody():
		if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
			b = append(b, "Content-Length: 0\r\n"...)
		}
		return b
	case r.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	default:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, r.ContentLength, 10)
		b = append(b, '\r', '\n')
	}
	if r.ExpectContinue {
		b = append(b, "Expect: 100-continue\r\n"...)
	}
	return b
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ':', ' ')
	b = append(b, value...)
	return append(b, '\r', '\n')
}

func (r *Request) hasBody() bool { return r.Body != nil && r.ContentLength != 0 }

// distrusted reports whether an endpoint may see the end of the request elsewhere. It may
// expect no body (RFC 9110, 9.3), or may treat what follows as another protocol. Such a
// request gets a connection of its own.
func (r *Request) distrusted() bool {
	if !r.hasBody() {
		return r.Upgrade != ""
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// replayable reports whether the request can be sent again unchanged.
func (r *Request) replayable() bool {
	return !r.hasBody() || r.replay != nil || !r.opened || (r.streamed != nil && r.streamed.whole())
}

// idempotent reports whether sending the request twice has the same effect as sending it
// once (RFC 9110, 9.2.2).
func (r *Request) idempotent() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return r.Upgrade == ""
	}
	return false
}

// small reports whether the whole body is read before it is sent. So a slow client does not
// occupy a connection to an endpoint.
func (r *Request) small() bool {
	return r.hasBody() && r.ContentLength > 0 && r.ContentLength <= MaxReplay && !r.ExpectContinue
}

func (r *Request) keepBody(buffer []byte) error {
	r.opened = true
	buffer = buffer[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, buffer); err != nil {
		return fmt.Errorf("%w: %w", errRequestBody, unexpected(err))
	}
	r.replay = buffer
	return nil
}

// attemptEnd returns when the response of an attempt that begins now must have been read
// completely. Zero: no bound.
func (r *Request) attemptEnd(now time.Time) time.Time {
	if r.AttemptTimeout <= 0 {
		return r.Deadline
	}
	return earlier(r.Deadline, now.Add(r.AttemptTimeout))
}

// headBy returns when the head of the response must have arrived, for a request that is
// sent now in an attempt with that end. Zero: no bound.
func (r *Request) headBy(now, end time.Time) time.Time {
	if r.HeaderTimeout <= 0 {
		return end
	}
	return earlier(end, now.Add(r.HeaderTimeout))
}

// earlier returns the earlier of two times. If end is zero, it returns other.
func earlier(end, other time.Time) time.Time {
	if !end.IsZero() && end.Before(other) {
		return end
	}
	return other
}
