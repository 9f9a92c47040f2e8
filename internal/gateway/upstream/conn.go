package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// maxInformational bounds the number of 1xx responses before the final one.
	maxInformational = 16
	// unwatched is how long the gateway waits for the head of a response before it watches
	// the context. Most heads have arrived by then, and watching a context is expensive.
	unwatched = 20 * time.Millisecond
)

var aLongTimeAgo = time.Unix(1, 0)

// conn is an HTTP/1.1 connection. It has one exchange at a time, which runs on the
// goroutine of its request. Only a body that is sent while the response is read has its own
// goroutine.
type conn struct {
	raw     net.Conn
	pool    *pool
	options *Options
	alive   liveness
	abort   func() // closes raw; kept to avoid an allocation per exchange

	in        buffer
	out       []byte
	idleSince time.Time
	reused    bool

	// These fields belong to the current exchange.
	ctx      context.Context
	request  *Request
	end      time.Time // when the response must have been read completely; zero: no bound
	head     head
	body     body
	response Response
	answered bool          // a byte of the response arrived
	written  int           // bytes of the request that were sent
	unfit    bool          // the connection must not be reused, whatever the response says
	idle     time.Duration // how long one read of the response's body may take; 0: no bound
	stop     func() bool   // nil while the context is not watched
	sending  *sender       // nil when the body was sent with the head
	wide     bool          // the response has a wide window
	client   netip.Addr    // that it was taken for

	deadline sync.Mutex // guards headRead, and the read deadline while a body is sent
	headRead bool
}

func newConn(raw net.Conn, pool *pool) *conn {
	c := &conn{raw: raw, pool: pool, options: pool.options, alive: newLiveness(raw)}
	c.abort = func() { _ = raw.Close() }
	c.in.source = raw
	return c
}

// roundTrip sends the request and reads the head of its response. The context bounds the
// exchange up to the end of the response.
func (c *conn) roundTrip(ctx context.Context, req *Request) (*Response, *Error) {
	c.ctx, c.request, c.sending, c.answered, c.written, c.headRead = ctx, req, nil, false, 0, false
	c.unfit = req.distrusted()
	exchanged := false
	defer func() {
		if !exchanged { // a panic
			_ = c.raw.Close()
		}
	}()
	err := c.exchange()
	exchanged = true
	if err == nil {
		c.response = Response{
			Status: c.head.status, Fields: c.head.fields, ContentLength: c.head.length,
			Upgrade: c.head.upgrade, Endpoint: c.pool.address, stream: c, Stream: isStream(c.head.fields),
			UntilClose: c.body.framing == byClose,
		}
		c.idle = req.IdleTimeout
		if c.response.Stream {
			c.idle = 0
		}
		c.widen()
		return &c.response, nil
	}
	canceled := context.Cause(ctx) // read before the client's body is stopped, which may end the context
	c.unwatch()
	_ = c.raw.Close()
	streams := req.hasBody() && req.replay == nil
	unsent := streams && (c.sending == nil || !c.sending.ended.Load())
	if c.sending != nil {
		if sendErr := c.sending.cut(); errors.Is(sendErr, errRequestBody) || errors.Is(sendErr, errClientGone) {
			err = sendErr
		}
	}
	failure := c.explain(canceled, err)
	failure.unsent = unsent
	return nil, failure
}

func (c *conn) exchange() error {
	req := c.request
	var err error
	if c.out, err = req.appendHead(c.out[:0]); err != nil {
		return err
	}
	c.out = append(c.out, req.replay...)
	streams := req.hasBody() && req.replay == nil
	headBy, soon, err := c.setDeadlines(streams || len(c.out) > bufferSize) // a write that may block
	if err != nil {
		return err
	}
	c.written, err = c.raw.Write(c.out)
	if err != nil && c.written == 0 {
		return err
	}
	// An endpoint may answer and close the connection before it has read everything. So
	// after a failed write, the response is still read.
	c.unfit = c.unfit || err != nil
	if err != nil {
		headBy = c.lateBy(headBy)
		if err := c.raw.SetReadDeadline(headBy); err != nil {
			return err
		}
	}
	if err == nil && streams {
		if answered, err := c.awaitContinue(); answered || err != nil {
			return err
		}
		c.sending = startSender(c)
	}
	if soon {
		return c.readHeadSoon(headBy)
	}
	return c.readHead()
}

// setDeadlines bounds the write of the head and the wait for the head of the response.
// headBy is the time at which the head must be there. If soon is set, the first wait is
// short, and the context is watched after it instead of from the start.
func (c *conn) setDeadlines(watch bool) (headBy time.Time, soon bool, err error) {
	now := c.options.Clock.Now()
	c.end = c.request.attemptEnd(now)
	headBy = c.request.headBy(now, c.end)
	look := now.Add(unwatched)
	if err := c.raw.SetWriteDeadline(headBy); err != nil {
		return headBy, true, err
	}
	if watch || (!headBy.IsZero() && headBy.Before(look)) {
		c.watch()
		return headBy, false, c.raw.SetReadDeadline(headBy)
	}
	return headBy, true, c.raw.SetReadDeadline(look)
}

// watch closes the connection when the context ends.
func (c *conn) watch() {
	if c.stop == nil {
		c.stop = context.AfterFunc(c.ctx, c.abort)
	}
}

// unwatch stops watching. It returns false if the connection was closed meanwhile.
func (c *conn) unwatch() bool {
	stop := c.stop
	c.ctx, c.stop = nil, nil
	return stop == nil || stop()
}

// readHeadSoon reads the head of the response. It begins to watch the context if that takes
// long, or if the rest of the response must still arrive.
func (c *conn) readHeadSoon(headBy time.Time) error {
	err := c.readHead()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		if err == nil && !c.bodyHeld() {
			c.watch()
		}
		return err
	}
	c.watch()
	if err := c.raw.SetReadDeadline(headBy); err != nil {
		return err
	}
	return c.readHead()
}

// awaitContinue waits until the endpoint asks for the body. It returns true if a final
// response came instead.
func (c *conn) awaitContinue() (bool, error) {
	if !c.request.ExpectContinue {
		return false, nil
	}
	wait := c.options.Clock.Now().Add(c.options.ContinueTimeout)
	end := c.end
	if err := c.raw.SetReadDeadline(earlier(end, wait)); err != nil {
		return false, err
	}
	err := c.readFinal(true)
	if errors.Is(err, os.ErrDeadlineExceeded) && (end.IsZero() || wait.Before(end)) {
		return false, c.raw.SetReadDeadline(end)
	}
	if err != nil {
		return false, err
	}
	if c.head.status == 100 {
		return false, nil
	}
	c.head.close = true // the endpoint still expects a body
	c.beginBody()
	return true, nil
}

func (c *conn) readHead() error {
	if err := c.readFinal(false); err != nil {
		return err
	}
	c.beginBody()
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.headRead = true
	if c.bodyHeld() {
		return nil
	}
	return c.raw.SetReadDeadline(c.end)
}

// bodyHeld reports whether the whole body is in the buffer.
func (c *conn) bodyHeld() bool {
	return c.body.done || (c.body.framing == byLength && c.body.left <= int64(c.in.len()))
}

// readFinal reads heads up to that of the final response, or up to 100 if or100 is set.
func (c *conn) readFinal(or100 bool) error {
	for range maxInformational + 1 {
		block, err := c.in.head(c.options.MaxHeaderBytes)
		c.answered = c.answered || err == nil || c.in.len() > 0
		if errors.Is(err, errTooLong) {
			return malformed("head of more than %d bytes", c.options.MaxHeaderBytes)
		}
		if err != nil {
			return unexpected(err)
		}
		if err := c.head.parse(block); err != nil {
			return err
		}
		if c.head.status < 200 {
			c.head.framing(c.request.Method) // which has no length
			c.unfit = c.unfit || c.head.doubtful
		}
		switch status := c.head.status; {
		case status >= 200:
			return nil
		case status == 101:
			if c.request.Upgrade == "" || !strings.EqualFold(c.head.upgrade, c.request.Upgrade) {
				return malformed("101 to a protocol that was not asked for")
			}
			return nil
		case status == 100:
			if or100 {
				return nil
			}
		case c.request.Informational != nil:
			c.request.Informational(status, c.head.fields)
		}
	}
	return malformed("more than %d informational responses", maxInformational)
}

func (c *conn) beginBody() {
	framing := c.head.framing(c.request.Method)
	c.body.begin(&c.in, framing, c.head.length, c.options.MaxHeaderBytes)
	// If an endpoint answers before it has the whole request, it may not read the rest of
	// it, and may later treat the rest as the next request.
	c.unfit = c.unfit || c.head.doubtful || (c.sending != nil && !c.sending.whole.Load())
}

func (c *conn) read(p []byte) (int, error) {
	bound := c.idle > 0 && !c.body.buffered()
	if bound {
		_ = c.raw.SetReadDeadline(earlier(c.end, c.options.Clock.Now().Add(c.idle)))
	}
	n, err := c.body.read(p)
	if bound && errors.Is(err, os.ErrDeadlineExceeded) && (c.end.IsZero() || c.options.Clock.Now().Before(c.end)) {
		err = ErrIdle
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.head.close = true
	}
	return n, err
}

func (c *conn) buffered() bool { return c.body.buffered() }

func (c *conn) trailers() []Field { return c.body.trailers }

func (c *conn) tunnel() net.Conn {
	c.unwatch() // from now on the tunnel ends when one side closes
	_ = c.raw.SetDeadline(time.Time{})
	return &tunnel{Conn: c.raw, in: &c.in}
}

// close keeps the connection for reuse. It does so only if exactly the complete request and
// response were sent on it, and if no server can have seen the end of one of them
// elsewhere.
func (c *conn) close() {
	c.narrow()
	whole := c.unwatch() && c.body.done && !c.head.close && c.in.len() == 0
	keep := whole && !c.unfit
	if whole && c.unfit && c.sending == nil {
		c.forget()
	}
	if !keep {
		_ = c.raw.Close()
	}
	if c.sending != nil && c.sending.cut() != nil {
		keep = false
	}
	c.request = nil
	if !keep {
		_ = c.raw.Close()
		return
	}
	c.head.reset()
	c.in.reset()
	c.pool.put(c)
}

// forget makes Close reset the connection. Otherwise the side that closes first keeps the
// port for a minute (TIME_WAIT), and the number of ports is limited.
func (c *conn) forget() {
	if tcp, ok := below(c.raw).(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0)
	}
}

// explain converts an error for the caller.
func (c *conn) explain(canceled, err error) *Error {
	failure := &Error{Kind: Reset, Endpoint: c.pool.address, Err: err}
	switch {
	case errors.Is(err, errRequestBody):
		failure.Kind = RequestBody
	case canceled != nil:
		failure.Kind, failure.Err = Canceled, canceled
	case errors.Is(err, errClientGone):
		failure.Kind = Canceled
	case errors.Is(err, errHeadInvalid):
		failure.Kind = InvalidRequest
	case errors.Is(err, errMalformed):
		failure.Kind = Malformed
	case errors.Is(err, os.ErrDeadlineExceeded):
		failure.Kind = Timeout
	default:
		failure.stale = c.reused && !c.answered
		failure.unprocessed = c.written == 0
	}
	return failure
}
