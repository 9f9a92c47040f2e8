package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

var (
	errHeaderTimeout = fmt.Errorf("no response in time: %w", context.DeadlineExceeded)
	errDial          = errors.New("connect")
	errClosed        = errors.New("the exchange has ended")
	errNotHTTP2      = errors.New("the endpoint answers in HTTP/1")
)

// headTooLarge is the text of golang.org/x/net/http2 for a response head above MaxHeaderBytes. The error has no name.
const headTooLarge = "http2: response header list larger than advertised limit"

// http2Transport sends requests to an endpoint over HTTP/2. golang.org/x/net/http2
// implements connections, streams and flow control.
type http2Transport struct {
	address string
	options *Options
	secure  *TLS
	http2   *http2.Transport
	inHTTP1 atomic.Bool // the last connection answered in HTTP/1
}

func newHTTP2(address string, service *Service) *http2Transport {
	options, secure, gate := &service.options, service.secure, &service.gate
	t := &http2Transport{address: address, options: options, secure: secure}
	t.http2 = &http2.Transport{
		AllowHTTP: true,
		DialTLSContext: func(ctx context.Context, _, _ string, _ *tls.Config) (net.Conn, error) {
			switch {
			case isOwn(ctx):
				gate.force()
			case !gate.open():
				return nil, errTooManyConnections
			}
			conn, err := dial(ctx, address, options, secure, gate, http2.NextProtoTLS)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", errDial, err)
			}
			if secure, is := conn.(*tls.Conn); is {
				if secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
					t.inHTTP1.Store(true)
					_ = conn.Close()
					return nil, errNotHTTP2
				}
				t.inHTTP1.Store(false)
				return conn, nil
			}
			return &http2Conn{Conn: conn, inHTTP1: &t.inHTTP1}, nil
		},
		DisableCompression: true,
		MaxHeaderListSize:  uint32(options.MaxHeaderBytes),
		IdleConnTimeout:    options.IdleTimeout,
		WriteByteTimeout:   options.SendTimeout,
		// A dead connection is detected before a stream waits for it.
		ReadIdleTimeout: 30 * time.Second,
		PingTimeout:     15 * time.Second,
	}
	return t
}

// http2Conn detects an endpoint that answers in HTTP/1.
type http2Conn struct {
	net.Conn

	answered bool
	inHTTP1  *atomic.Bool
}

// Read returns a special error if the first bytes are an HTTP/1 status line.
func (c *http2Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.answered {
		c.answered = true
		inHTTP1 := bytes.HasPrefix(p[:n], []byte("HTTP/1."))
		c.inHTTP1.Store(inHTTP1)
		if inHTTP1 {
			return 0, errNotHTTP2
		}
	}
	return n, err
}

func (t *http2Transport) tidy(time.Time) {} // the transport closes idle connections itself

func (t *http2Transport) evict() bool { return false }

func (t *http2Transport) drain() { t.http2.CloseIdleConnections() }

// roundTrip sends a request. The transport itself repeats a request that the endpoint has
// not processed.
func (t *http2Transport) roundTrip(ctx context.Context, req *Request, _ bool) (*Response, *Error) {
	e := &http2Exchange{request: req, hints: hints{forward: req.Informational, panics: t.options.Panics}}
	e.start(ctx, t.options)
	returned := false
	defer func() {
		if !returned { // a panic
			_ = e.hints.end()
			e.finish()
		}
	}()
	request, err := e.build(t)
	if err != nil {
		return nil, &Error{Kind: InvalidRequest, Endpoint: t.address, Err: err}
	}
	response, err := t.http2.RoundTrip(request) //nolint:bodyclose // the exchange closes it
	e.answered.Store(err == nil)
	e.stopAwaiting()
	fault := e.hints.end()
	returned = true
	if err != nil {
		failure := e.explain(ctx, t.address, cmp.Or(fault, err))
		if failure.Kind == Reset && t.inHTTP1.Load() { // the transport may not report why a connection ended
			failure.Kind = WrongProtocol
		}
		e.finish()
		return nil, failure
	}
	e.response = response
	if status := response.StatusCode; status < 200 || status > 999 { // the transport takes any number
		e.close()
		return nil, &Error{Kind: Malformed, Endpoint: t.address, Err: malformed("status %d", status)}
	}
	fields := fieldsOf(response.Header)
	streams := isStream(fields)
	if !streams {
		e.idle = req.IdleTimeout
	}
	req.opened = req.opened || e.body != nil
	return &Response{
		Status: response.StatusCode, Fields: fields, ContentLength: response.ContentLength,
		Endpoint: t.address, stream: e, Stream: streams,
	}, nil
}

// http2Exchange is a request in flight with its response.
type http2Exchange struct {
	request   *Request
	ctx       context.Context
	cancel    context.CancelCauseFunc
	endTimer  *time.Timer // nil without a deadline
	headTimer atomic.Pointer[time.Timer]
	answered  atomic.Bool // the head was received
	body      *http2Body  // nil without a body
	response  *http.Response
	idle      time.Duration // how long one read of the response's body may take; 0: no bound
	idleTimer *time.Timer   // nil before the first read
	hints     hints
}

// start starts the timeouts of the exchange and of the head of its response.
func (e *http2Exchange) start(ctx context.Context, options *Options) {
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	now := options.Clock.Now()
	if end := e.request.attemptEnd(now); !end.IsZero() {
		e.endTimer = time.AfterFunc(end.Sub(now), func() { e.cancel(errHeaderTimeout) })
	}
	streamed := e.request.hasBody() && e.request.replay == nil
	if streamed {
		e.body = &http2Body{request: e.request, panics: options.Panics, ended: e.awaitHead, stuckAfter: options.SendTimeout, stuck: e.giveUpSending}
	} else {
		e.awaitHead()
	}
}

// awaitHead bounds the wait for the head of the response. It starts when the request was
// sent.
func (e *http2Exchange) awaitHead() {
	if e.request.HeaderTimeout <= 0 {
		return
	}
	timer := time.AfterFunc(e.request.HeaderTimeout, func() {
		if !e.answered.Load() {
			e.cancel(errHeaderTimeout)
		}
	})
	e.headTimer.Store(timer)
}

// giveUpSending ends an exchange whose endpoint does not read the request.
func (e *http2Exchange) giveUpSending() {
	if !e.answered.Load() {
		e.cancel(errHeaderTimeout)
	}
}

func (e *http2Exchange) stopAwaiting() {
	if timer := e.headTimer.Load(); timer != nil {
		timer.Stop()
	}
}

func (e *http2Exchange) build(t *http2Transport) (*http.Request, error) {
	req := e.request
	if req.Upgrade != "" {
		return nil, errors.New("HTTP/2 knows no upgrade")
	}
	if _, err := req.appendHead(nil); err != nil { // the same checks as for HTTP/1.1
		return nil, err
	}
	// The transport sends an opaque target unchanged, without the scheme and the host
	// before it. Other targets it would normalize.
	target := &url.URL{Scheme: "http", Host: t.address, Opaque: "//" + cmp.Or(req.Host, t.address) + req.Target}
	if t.secure != nil {
		target.Scheme = "https"
	}
	request := &http.Request{
		Method: req.Method, URL: target, Host: req.Host, Header: headerOf(req.Fields),
		Proto: "HTTP/2.0", ProtoMajor: 2,
	}
	if request.Header["User-Agent"] == nil {
		request.Header["User-Agent"] = nil // without it, the transport would add its own
	}
	if req.AcceptTrailers {
		request.Header["Te"] = []string{"trailers"}
	}
	e.addBody(request)
	ctx := httptrace.WithClientTrace(e.ctx, &httptrace.ClientTrace{Got1xxResponse: e.hints.take})
	return request.WithContext(ctx), nil
}

func (e *http2Exchange) addBody(request *http.Request) {
	req := e.request
	if !req.hasBody() {
		return
	}
	request.ContentLength = req.ContentLength
	if req.replay != nil {
		replay := string(req.replay) // a copy, because the transport may read it after the exchange
		request.Body = io.NopCloser(strings.NewReader(replay))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(replay)), nil }
		return
	}
	request.Body = e.body
	if req.Trailers != nil {
		request.Trailer = http.Header{}
		for _, field := range req.Trailers() { // the names are announced; the values are known at the end of the body
			request.Trailer[textproto.CanonicalMIMEHeaderKey(field.Name)] = nil
		}
		e.body.trailer = request.Trailer
	}
}

func (e *http2Exchange) read(p []byte) (int, error) {
	switch {
	case e.idle <= 0:
		return e.response.Body.Read(p)
	case e.idleTimer == nil:
		e.idleTimer = time.AfterFunc(e.idle, func() { e.cancel(ErrIdle) })
	default:
		e.idleTimer.Reset(e.idle)
	}
	n, err := e.response.Body.Read(p)
	e.idleTimer.Stop()
	if err != nil && errors.Is(context.Cause(e.ctx), ErrIdle) {
		err = ErrIdle
	}
	return n, err
}

func (e *http2Exchange) buffered() bool { return false }

func (e *http2Exchange) trailers() []Field {
	return slices.DeleteFunc(fieldsOf(e.response.Trailer), func(field Field) bool { return fieldname.ForbiddenTrailer(field.Name) })
}

func (e *http2Exchange) tunnel() net.Conn { return nil }

func (e *http2Exchange) close() {
	_ = e.response.Body.Close()
	e.finish()
}

func (e *http2Exchange) finish() {
	e.cancel(errClosed)
	e.stopAwaiting()
	if e.endTimer != nil {
		e.endTimer.Stop()
	}
	if e.body != nil && e.body.finish() {
		e.request.opened = true
	}
}

// explain converts an error for the caller.
func (e *http2Exchange) explain(ctx context.Context, address string, err error) *Error {
	failure := &Error{Kind: Reset, Endpoint: address, Err: err}
	streamError, refused := errors.AsType[http2.StreamError](err)
	switch {
	case errors.Is(err, errMalformed):
		failure.Kind = Malformed
	case e.body != nil && e.body.failed.Load():
		failure.Kind, failure.Err = RequestBody, fmt.Errorf("%w: %w", errRequestBody, e.body.cause)
	case ctx.Err() != nil:
		failure.Kind, failure.Err = Canceled, context.Cause(ctx)
	case errors.Is(context.Cause(e.ctx), errHeaderTimeout):
		failure.Kind, failure.Err = Timeout, errHeaderTimeout
		failure.unsent = e.body != nil && !e.body.whole.Load()
	case err.Error() == headTooLarge:
		failure.Kind = Malformed
	case errors.Is(err, errTooManyConnections):
		failure.Kind = MaxConnections
	case errors.Is(err, errDial):
		failure.Kind, failure.unprocessed = Connect, true
	case refused && streamError.Code == http2.ErrCodeRefusedStream:
		failure.unprocessed = true
	}
	return failure
}

func fieldsOf(header http.Header) []Field {
	fields := make([]Field, 0, len(header))
	for name, values := range header {
		if fieldname.OfConnection(name) && name != "Content-Length" {
			continue
		}
		for _, value := range values {
			fields = append(fields, Field{Name: name, Value: value})
		}
	}
	return fields
}

func headerOf(fields []Field) http.Header {
	header := make(http.Header, len(fields)+2)
	for _, field := range fields {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		header[name] = append(header[name], field.Value)
	}
	return header
}
