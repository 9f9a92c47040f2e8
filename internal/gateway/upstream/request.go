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
)

// Field is one line of a header or trailer section.
type Field struct {
	Name  string
	Value string
}

// Protocol is what is spoken to an endpoint.
type Protocol int

// The protocols.
const (
	// HTTP1 is HTTP/1.1.
	HTTP1 Protocol = iota
	// HTTP2 is HTTP/2: over TLS when the Service has TLS, otherwise with prior
	// knowledge (h2c).
	HTTP2
)

// Request is a request to a Service. It must not change until the response is closed.
type Request struct {
	// Client is who asked, as clients.Of says, for its share of the limits. The zero Addr is
	// nobody in particular.
	Client netip.Addr
	// Protocol is what is spoken to the endpoint.
	Protocol Protocol
	// Method is the method, as it is sent.
	Method string
	// Target is the request target in origin form (/path?query), or "*".
	Target string
	// Host is the authority that the request is for.
	Host string
	// Fields are the end-to-end fields. Host, framing and everything that concerns
	// one connection only (see fieldname.OfConnection) are the sender's; here they are refused.
	Fields []Field
	// Upgrade is the protocol to change to, empty for none.
	Upgrade string
	// AcceptTrailers tells the endpoint that trailers are passed on (TE: trailers).
	AcceptTrailers bool

	// Body is the body, nil for none.
	Body io.Reader
	// ContentLength is the length of Body, -1 if it is not known.
	ContentLength int64
	// Trailers returns the trailers once Body has ended. Before that it returns fields
	// with the names that are known by then. Optional.
	Trailers func() []Field
	// StopBody makes a Read of Body that is under way return. It is called when the
	// response is closed before the body has been sent. Required with a Body.
	StopBody func()
	// ExpectContinue waits for 100 Continue before the body is read.
	ExpectContinue bool

	// Informational is called for 1xx responses other than 100 and 101. Optional.
	Informational func(status int, fields []Field)

	// Deadline is when the response must have been read to its end. Zero: never.
	Deadline time.Time
	// HeaderTimeout bounds the wait of each attempt for the head of a response, once
	// the request is sent. Zero: no bound.
	HeaderTimeout time.Duration
	// IdleTimeout bounds the wait for each further piece of the response's body. It does not
	// hold for a stream. Zero: no bound.
	IdleTimeout time.Duration
	// Retry says what is retried beyond what is safe anyway.
	Retry Retry

	replay []byte // the whole body, once it has been read
	opened bool   // a byte of the body may have been taken

	resent          int // how often it was sent again
	budgetExhausted bool
}

// Resent returns how often the request was sent again, once Service.Do has returned.
func (r *Request) Resent() int { return r.resent }

// BudgetExhausted reports whether the request would have been sent once more, had the
// Service not used up its budget of retries.
func (r *Request) BudgetExhausted() bool { return r.budgetExhausted }

// Retry says which failed requests are sent again. Except after a failure to connect,
// where nothing was sent, it applies to idempotent methods whose body is small enough to
// be kept. Independently of it, a request is sent again when the endpoint cannot have
// acted on it, or closed a kept connection at the moment that it was used.
type Retry struct {
	// Attempts is how many times a request is sent again at most.
	Attempts int
	// On are the causes.
	On Causes
}

// Causes is a set of reasons to send a request again.
type Causes uint8

// The causes of a retry. Those with a status throw a response away.
const (
	OnConnectFailure Causes = 1 << iota
	OnReset
	OnTimeout
	OnStatus502
	OnStatus503
	OnStatus504
)

// causeOf returns the cause that a status is, 0 for none.
func causeOf(status int) Causes {
	switch status {
	case 502:
		return OnStatus502
	case 503:
		return OnStatus503
	case 504:
		return OnStatus504
	}
	return 0
}

// MaxReplay is the size up to which a body is read before it is sent, so that it can be
// sent again and goes out together with the head.
const MaxReplay = 16 << 10

var errHeadInvalid = errors.New("the request has an invalid")

// appendHead appends the head of the request as HTTP/1.1. What could be read as something
// else by the endpoint is refused, wherever it came from.
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

// distrusted reports whether an endpoint may see the end of the request elsewhere: where it
// looks for no body (RFC 9110, 9.3), or takes what follows for another protocol. Its
// connection then is for this request only.
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

// replayable reports whether the request can be sent again as it was.
func (r *Request) replayable() bool { return !r.hasBody() || r.replay != nil || !r.opened }

// idempotent reports whether sending the request twice is the same as sending it once
// (RFC 9110, 9.2.2).
func (r *Request) idempotent() bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return r.Upgrade == ""
	}
	return false
}

// small reports whether the body is read whole before it is sent. A client that is slow
// to send it then holds no connection to an endpoint either.
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

// headBy returns when the head of a response to a request sent now must have come, zero
// for never.
func (r *Request) headBy(now time.Time) time.Time {
	if r.HeaderTimeout <= 0 {
		return r.Deadline
	}
	return earlier(r.Deadline, now.Add(r.HeaderTimeout))
}

// earlier returns the earlier of two times, of which the first may be zero for never.
func earlier(end, other time.Time) time.Time {
	if !end.IsZero() && end.Before(other) {
		return end
	}
	return other
}
