package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
)

var (
	errHeaderTimeout = fmt.Errorf("no response in time: %w", context.DeadlineExceeded)
	errDial          = errors.New("connect")
	errClosed        = errors.New("the exchange has ended")
	errNotHTTP2      = errors.New("the endpoint answers in HTTP/1")
)

// These are texts of golang.org/x/net/http2 for errors that have no name.
const (
	// headTooLarge is for a response head above MaxHeaderBytes.
	headTooLarge = "http2: response header list larger than advertised limit"
	// resetByPeer is the cause of a reset that the endpoint has sent. Other resets are those of the transport, which has found
	// a fault in what the endpoint has sent.
	resetByPeer = "received from peer"
	// moreThanDeclared is for a body longer than its Content-Length.
	moreThanDeclared = "net/http: server replied with more than declared Content-Length; truncated"
)

// unprocessed are texts for requests that were not sent, or that the endpoint says it has not processed.
var unprocessed = []string{
	"http2: client conn not usable",
	"http2: client conn could not be established",
	"http2: Transport received Server's graceful shutdown GOAWAY",
}

// refusedWithCode begins what the transport says of a first request that a GOAWAY with an error code has left out.
const refusedWithCode = "http2: Transport received GOAWAY from server ErrCode:"

// http2Transport sends requests to an endpoint over HTTP/2. golang.org/x/net/http2 implements
// streams and flow control.
type http2Transport struct {
	address  string
	endpoint *endpoint
	service  *Service
	places   http2Places
	conns    [ending]*http2Conns // wide and narrow
}

func newHTTP2(endpoint *endpoint, service *Service) *http2Transport {
	t := &http2Transport{address: endpoint.address, endpoint: endpoint, service: service}
	t.places.gate = &service.gate
	for of, window := range [...]int{wide: wideWindow, narrow: narrowWindow} {
		t.conns[of] = newHTTP2Conns(window, endpoint, &service.options, func(ctx context.Context) (net.Conn, *http2Place, error) {
			return t.connect(ctx, http2Kind(of))
		})
	}
	return t
}

// connect opens a connection for HTTP/2.
func (t *http2Transport) connect(ctx context.Context, of http2Kind) (net.Conn, *http2Place, error) {
	if !t.places.take(of, isOwn(ctx)) {
		return nil, nil, errTooManyConnections
	}
	place := &http2Place{of: &t.places, kind: of}
	conn, err := dial(ctx, t.endpoint, place.release, http2.NextProtoTLS)
	if err != nil {
		return nil, nil, err
	}
	if secure, is := conn.(*tls.Conn); is && secure.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
		_ = conn.Close()
		return nil, nil, errNotHTTP2
	}
	return conn, place, nil
}

func (t *http2Transport) tidy(time.Time) {
	for _, conns := range t.conns {
		conns.tidy()
	}
}

func (t *http2Transport) evict() bool { return false }

func (t *http2Transport) drain() {
	for _, conns := range t.conns {
		conns.drain()
	}
}

// roundTrip sends a request.
func (t *http2Transport) roundTrip(ctx context.Context, req *Request, _ bool) (*Response, *Error) {
	options := &t.service.options
	e := &http2Exchange{request: req, hints: hints{forward: req.Informational, panics: options.Panics}}
	e.start(ctx, options)
	returned := false
	defer func() {
		if !returned { // a panic
			_ = e.hints.end()
			e.failed = true
			e.finish()
		}
	}()
	request, err := e.build(t)
	if err != nil {
		return nil, &Error{Kind: InvalidRequest, Endpoint: t.address, Err: err}
	}
	if err = e.connect(t); err == nil {
		err = e.exchange(request)
	}
	e.answered.Store(err == nil)
	e.stopAwaiting()
	fault := e.hints.end()
	returned = true
	if err = cmp.Or(fault, err); err != nil {
		failure := e.explain(ctx, t.address, err)
		e.failed = true
		e.trusted = failure.Kind != Malformed
		e.end()
		return nil, failure
	}
	streams := isStream(e.head.fields)
	if !streams {
		e.idle = req.IdleTimeout
	}
	if e.body != nil {
		e.body.source.settle(e.body)
		req.opened = true
		// A transport that waits for the endpoint to take more of the body does not look at the context.
		body := e.response.Body
		e.unwatch = context.AfterFunc(e.ctx, func() { _ = body.Close() })
	}
	return &Response{
		Status: e.head.status, Fields: e.head.fields, ContentLength: e.head.length,
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
	head      head // of the response
	rest      http2Rest
	idle      time.Duration // how long one read of the response's body may take; 0: no bound
	idleTimer *time.Timer   // nil before the first read
	hints     hints
	unwatch   func() bool // ends what closes the response when the context is done; nil: there is none

	conn    *http2Conn  // nil without a place on one
	conns   *http2Conns // that it belongs to
	windows *windows    // that a wide window was taken from; nil without one
	failed  bool        // the response was not read to its end
	trusted bool        // the endpoint has kept to the protocol
}

// start starts the timeouts of the exchange and of the head of its response.
func (e *http2Exchange) start(ctx context.Context, options *Options) {
	e.trusted = true
	e.ctx, e.cancel = context.WithCancelCause(ctx)
	now := options.Clock.Now()
	if end := e.request.attemptEnd(now); !end.IsZero() {
		e.endTimer = time.AfterFunc(end.Sub(now), func() { e.cancel(errHeaderTimeout) })
	}
	streamed := e.request.hasBody() && e.request.replay == nil
	if streamed {
		e.body = &http2Body{
			request: e.request, source: e.request.source(options.Panics), ended: e.awaitHead,
			vigil: vigil{every: options.SendTimeout, look: e.mayGoOnSending},
		}
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

// mayGoOnSending ends an exchange whose endpoint does not read the request, unless it may take its time and somebody waits for it.
func (e *http2Exchange) mayGoOnSending() bool {
	switch {
	case e.request.clientGone():
		e.cancel(errClientGone)
	case !e.request.Patient && !e.answered.Load():
		e.cancel(errHeaderTimeout)
	default:
		return true
	}
	return false
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
	if t.service.secure != nil {
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
	return request.WithContext(httptrace.WithClientTrace(e.ctx, e.trace())), nil
}

// trace follows what comes of the response.
func (e *http2Exchange) trace() *httptrace.ClientTrace {
	if e.body == nil {
		return &httptrace.ClientTrace{Got1xxResponse: e.hints.take}
	}
	return &httptrace.ClientTrace{
		GotFirstResponseByte: func() { e.body.head.Store(true) },
		Got1xxResponse: func(status int, header textproto.MIMEHeader) error {
			e.body.head.Store(false)
			return e.hints.take(status, header)
		},
	}
}

// connect takes a place on a connection, and the window of the response.
func (e *http2Exchange) connect(t *http2Transport) error {
	e.conns = t.conns[narrow]
	if windows := t.service.windows; windows.take(e.request.Client) {
		e.windows = windows
		e.conns = t.conns[wide]
	}
	var err error
	e.conn, err = e.conns.get(e.ctx, e.request.search.wait)
	if e.windows == nil || !errors.Is(err, errTooManyConnections) {
		return err
	}
	conn := t.conns[narrow].find() // which needs no more memory
	if conn == nil {
		return err
	}
	e.conn, e.conns = conn, t.conns[narrow]
	return nil
}

// exchange sends the request, and reads the head of the response.
func (e *http2Exchange) exchange(request *http.Request) error {
	var err error
	if e.response, err = e.conn.RoundTrip(request); err != nil { //nolint:bodyclose // close closes it
		if errors.Is(e.conn.wire.cause(), errNotHTTP2) { // the transport may not report why a connection has ended
			return errNotHTTP2
		}
		return err
	}
	status, _, _ := strings.Cut(e.response.Status, " ")
	if err := e.head.take(status, e.response.Header); err != nil {
		return err
	}
	return e.beginBody()
}

func (e *http2Exchange) read(p []byte) (int, error) {
	switch {
	case e.idle <= 0:
		return e.readRest(p)
	case e.idleTimer == nil:
		e.idleTimer = time.AfterFunc(e.idle, func() { e.cancel(ErrIdle) })
	default:
		e.idleTimer.Reset(e.idle)
	}
	n, err := e.readRest(p)
	e.idleTimer.Stop()
	if err != nil && errors.Is(context.Cause(e.ctx), ErrIdle) {
		err = ErrIdle
	}
	return n, err
}

func (e *http2Exchange) buffered() bool { return false }

func (e *http2Exchange) trailers() []Field { return e.rest.trailers }

func (e *http2Exchange) tunnel() net.Conn { return nil }

func (e *http2Exchange) close() {
	e.end()
	e.request.streamed.finish()
}

// end ends the attempt. Another one may follow.
func (e *http2Exchange) end() {
	e.cancel(errClosed) // otherwise the transport would wait for a client that sends its body slowly
	if e.response != nil {
		_ = e.response.Body.Close()
	}
	e.finish()
}

func (e *http2Exchange) finish() {
	if e.unwatch != nil {
		e.unwatch()
	}
	e.cancel(errClosed)
	e.stopAwaiting()
	if e.endTimer != nil {
		e.endTimer.Stop()
	}
	if e.body != nil && e.body.finish() {
		e.request.opened = true
	}
	if e.conn != nil {
		e.conns.put(e.conn, e.failed, e.trusted)
		e.conn = nil
	}
	if e.windows != nil {
		e.windows.release(e.request.Client)
		e.windows = nil
	}
}

// explain converts an error for the caller.
func (e *http2Exchange) explain(ctx context.Context, address string, err error) *Error {
	failure := &Error{Kind: Reset, Endpoint: address, Err: err}
	reset, isReset := errors.AsType[http2.StreamError](err)
	switch {
	case errors.Is(err, errMalformed), err.Error() == headTooLarge:
		failure.Kind = Malformed
	case e.body != nil && e.body.failed.Load():
		failure.Kind, failure.Err = RequestBody, fmt.Errorf("%w: %w", errRequestBody, e.body.cause)
	case ctx.Err() != nil:
		failure.Kind, failure.Err = Canceled, context.Cause(ctx)
	case errors.Is(context.Cause(e.ctx), errClientGone):
		failure.Kind, failure.Err = Canceled, errClientGone
	case errors.Is(context.Cause(e.ctx), errHeaderTimeout):
		failure.Kind, failure.Err = Timeout, errHeaderTimeout
		failure.unsent = e.body != nil && !e.body.whole.Load()
	case errors.Is(err, errNotHTTP2):
		failure.Kind = WrongProtocol
	case errors.Is(err, errTooManyConnections):
		failure.Kind = MaxConnections
	case errors.Is(err, errDial):
		failure.Kind, failure.unprocessed, failure.hangs = Connect, true, errors.Is(err, errHangs)
	case isReset && reset.Code == http2.ErrCodeRefusedStream, slices.Contains(unprocessed, err.Error()), strings.HasPrefix(err.Error(), refusedWithCode):
		failure.unprocessed = true
	case isFault(err):
		failure.Kind = Malformed
	}
	return failure
}

func headerOf(fields []Field) http.Header {
	header := make(http.Header, len(fields)+2)
	for _, field := range fields {
		name := textproto.CanonicalMIMEHeaderKey(field.Name)
		header[name] = append(header[name], field.Value)
	}
	return header
}
