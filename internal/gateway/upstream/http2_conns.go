package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

const (
	// connectionWindow is how many bytes of all responses on a connection may wait for those who take them. Responses that
	// nobody takes must not use it up, because then the others on the connection would wait too.
	connectionWindow = 1 << 30
	// maxStreams bounds the requests on a connection, whatever the endpoint allows.
	maxStreams = 1000
	// maxLost bounds the bytes that the connection window may lose. When a request fails while its response comes,
	// golang.org/x/net/http2 may forget to give their part of the window back.
	maxLost = connectionWindow - maxStreams*wideWindow
	// settingsTimeout bounds the wait for the settings of an endpoint. Without them it is not known how many requests it takes.
	settingsTimeout = time.Second
	// maxUseless bounds the connections that a request waits for and that take no request at all.
	maxUseless = 3
)

var errNoRequests = errors.New("the connection takes no requests")

// http2Conns are the connections to an endpoint on which each response has the same window.
type http2Conns struct {
	window    int64
	endpoint  *endpoint
	transport func() (*http2.Transport, error)
	connect   func(ctx context.Context) (net.Conn, *http2Place, error)

	mu      sync.Mutex
	conns   []*http2Conn
	dialing *http2Dial // nil while no connection is opened
	drained bool
}

// http2Dial is a connection that is being opened, for all requests that need one.
type http2Dial struct {
	own     bool          // by a request of the gateway's own
	done    chan struct{} // closed when it is open, or has failed
	conn    *http2Conn    // nil if it has failed
	err     error
	waiting int  // guarded by http2Conns.mu
	hangs   bool // it is one of endpoint.hanging until it has ended; guarded by http2Conns.mu
}

// http2Conn is a connection that requests share.
type http2Conn struct {
	*http2.ClientConn

	wire    *http2Wire
	place   *http2Place
	window  int64
	streams int   // requests that have it; guarded by http2Conns.mu
	used    bool  // it has taken a request; guarded by http2Conns.mu
	lost    int64 // bytes of the connection window at most; guarded by http2Conns.mu
	retired bool  // it takes no further requests; guarded by http2Conns.mu
}

func newHTTP2Conns(window int, endpoint *endpoint, options *Options, connect func(ctx context.Context) (net.Conn, *http2Place, error)) *http2Conns {
	return &http2Conns{window: int64(window), endpoint: endpoint, connect: connect, transport: sync.OnceValues(func() (*http2.Transport, error) {
		transport, err := http2.ConfigureTransports(&http.Transport{HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: connectionWindow,
			MaxReceiveBufferPerStream:     window,
		}})
		if err != nil {
			return nil, err
		}
		transport.DisableCompression = true
		transport.MaxHeaderListSize = uint32(options.MaxHeaderBytes)
		transport.IdleConnTimeout = options.IdleTimeout
		transport.WriteByteTimeout = options.SendTimeout
		// A dead connection is detected before a stream waits for it.
		transport.ReadIdleTimeout = 30 * time.Second
		transport.PingTimeout = 15 * time.Second
		return transport, nil
	})}
}

// get returns a connection with a place for a request. The caller must call put afterwards. It opens another connection for as
// long as others take the places, but not if the endpoint only says that it takes requests. wait bounds
// the wait for connections, unless it is 0.
func (p *http2Conns) get(ctx context.Context, wait time.Duration) (*http2Conn, error) {
	var opened *http2Conn
	var late <-chan time.Time
	for useless := 0; ; {
		p.mu.Lock()
		if c := p.reserve(); c != nil {
			p.mu.Unlock()
			return c, nil
		}
		if opened != nil && !opened.used {
			useless++
		}
		if useless == maxUseless {
			p.mu.Unlock()
			return nil, fmt.Errorf("%w: %w", errDial, errNoRequests)
		}
		d, began := p.dial(ctx)
		p.mu.Unlock()
		if wait > 0 && late == nil {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			late = timer.C
		}
		hangs := p.await(ctx, d, late)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case hangs:
			return nil, fmt.Errorf("%w: %w", errDial, errHangs)
		case errors.Is(d.err, errTooManyConnections) && isOwn(ctx) && !d.own: // its own has no such limit
		case d.err != nil:
			return nil, d.err
		case began && p.endedByEndpoint(d.conn):
			return nil, fmt.Errorf("%w: %w", errDial, d.conn.wire.cause())
		}
		opened = d.conn
	}
}

// await waits for a connection that is being opened. It returns true if that takes too long.
func (p *http2Conns) await(ctx context.Context, d *http2Dial, late <-chan time.Time) bool {
	hangs := false
	select {
	case <-d.done:
	case <-ctx.Done():
	case <-late:
		hangs = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d.waiting--
	if hangs = hangs && p.dialing == d; hangs && !d.hangs {
		d.hangs = true
		p.endpoint.hanging.Add(1)
	}
	return hangs
}

// dial returns the connection that is being opened, which the caller waits for. began tells that there was none. It needs mu held.
func (p *http2Conns) dial(ctx context.Context) (d *http2Dial, began bool) {
	if d = p.dialing; d == nil {
		d, began = &http2Dial{own: isOwn(ctx), done: make(chan struct{})}, true
		p.dialing = d
		go p.open(context.WithoutCancel(ctx), d)
	}
	d.waiting++
	return d, began
}

// find is get without opening a connection. It returns nil if there is no place.
func (p *http2Conns) find() *http2Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserve()
}

// reserve returns an open connection with a place for a request, or nil. Then it forgets those that will never have one. It needs
// mu held.
func (p *http2Conns) reserve() *http2Conn {
	for _, c := range p.conns {
		if c.streams < maxStreams && !c.retired && !c.wire.ended() && c.ReserveNewRequest() {
			c.streams++
			c.used = true
			return c
		}
	}
	p.conns = slices.DeleteFunc(p.conns, func(c *http2Conn) bool {
		if c.State().Closing { // the endpoint lets those requests end that it has
			c.place.end()
		}
		ends := c.streams == 0 && c.refusesAll()
		if ends {
			go c.Close()
		}
		return ends
	})
	return nil
}

// endedByEndpoint reports whether the endpoint has ended a connection before any request had it. If one had, the endpoint was
// reached, and what the gateway closes itself says nothing about the endpoint.
func (p *http2Conns) endedByEndpoint(c *http2Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.wire.ended() && !c.used && !errors.Is(c.wire.cause(), net.ErrClosed)
}

// refusesAll reports whether the endpoint takes no requests on the connection any more, not even one when it has none.
func (c *http2Conn) refusesAll() bool {
	state := c.State()
	return c.wire.ended() || state.Closed || state.Closing || state.MaxConcurrentStreams == 0
}

// open opens a connection.
func (p *http2Conns) open(ctx context.Context, d *http2Dial) {
	c, err := p.start(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dialing = nil
	d.conn, d.err = c, err
	close(d.done)
	if d.hangs {
		p.endpoint.hanging.Add(-1)
		if err != nil && d.waiting == 0 {
			p.endpoint.unreached(ctx, err)
		}
	}
	switch {
	case err != nil:
	case p.drained && d.waiting == 0:
		go c.Close()
	default:
		p.conns = append(p.conns, c)
	}
}

// start opens a connection and waits until the endpoint has said what it takes.
func (p *http2Conns) start(ctx context.Context) (*http2Conn, error) {
	transport, err := p.transport()
	if err != nil {
		return nil, err
	}
	conn, place, err := p.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	wire := &http2Wire{Conn: conn, settled: make(chan struct{})}
	client, err := transport.NewClientConn(wire)
	if err != nil {
		_ = wire.Close()
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	c := &http2Conn{ClientConn: client, wire: wire, place: place, window: p.window}
	timer := time.NewTimer(settingsTimeout)
	defer timer.Stop()
	select {
	case <-wire.settled:
	case <-timer.C:
	}
	switch {
	case wire.ended():
		err = wire.cause()
	case !c.CanTakeNewRequest():
		err = errNoRequests
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("%w: %w", errDial, err)
	}
	return c, nil
}

// put gives back the place of a request. failed says that its response may have been lost on the way. Without trust, the
// connection gets no further requests.
func (p *http2Conns) put(c *http2Conn, failed, trusted bool) {
	p.mu.Lock()
	c.streams--
	if failed {
		c.lost += c.window
	}
	if !c.retired && (!trusted || c.lost > maxLost) {
		c.retired = true
		c.place.end()
		c.SetDoNotReuse()
	}
	ended := c.streams == 0 && (c.retired || c.wire.ended())
	if ended {
		p.conns = slices.DeleteFunc(p.conns, func(other *http2Conn) bool { return other == c })
	}
	p.mu.Unlock()
	if ended {
		_ = c.Close()
	}
}

// tidy forgets idle connections that take no requests any more. The transport closes those that were idle for too long.
func (p *http2Conns) tidy() {
	p.closeIdle(func(c *http2Conn) bool { return c.wire.ended() || !c.CanTakeNewRequest() })
}

// drain closes idle connections, and one that is being opened unless a request waits for it.
func (p *http2Conns) drain() {
	p.mu.Lock()
	p.drained = true
	p.mu.Unlock()
	p.closeIdle(func(*http2Conn) bool { return true })
}

func (p *http2Conns) closeIdle(chosen func(*http2Conn) bool) {
	var idle []*http2Conn
	p.mu.Lock()
	p.conns = slices.DeleteFunc(p.conns, func(c *http2Conn) bool {
		if c.streams > 0 || !chosen(c) {
			return false
		}
		idle = append(idle, c)
		return true
	})
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.Close()
	}
}

// http2Wire is what is below a connection: TCP, or TLS. It detects an endpoint that answers in HTTP/1, and notes the end.
type http2Wire struct {
	net.Conn

	reads   int           // belongs to the goroutine that reads
	settled chan struct{} // closed when the first bytes were understood, or reading has failed
	settle  sync.Once
	failure atomic.Pointer[error]
}

// Read returns a special error if the first bytes are an HTTP/1 status line.
func (w *http2Wire) Read(p []byte) (int, error) {
	if w.reads++; w.reads == 2 {
		w.settle.Do(func() { close(w.settled) })
	}
	n, err := w.Conn.Read(p)
	if w.reads == 1 && bytes.HasPrefix(p[:n], []byte("HTTP/1.")) {
		n, err = 0, errNotHTTP2
	}
	if err != nil {
		w.failure.CompareAndSwap(nil, &err)
		w.settle.Do(func() { close(w.settled) })
	}
	return n, err
}

// Close closes the connection. It does not wait long for an endpoint that does not read the end of TLS.
func (w *http2Wire) Close() error {
	w.failure.CompareAndSwap(nil, &net.ErrClosed)
	if secure, ok := w.Conn.(*tls.Conn); ok {
		defer time.AfterFunc(250*time.Millisecond, func() { _ = secure.NetConn().Close() }).Stop()
	}
	return w.Conn.Close()
}

func (w *http2Wire) ended() bool { return w.failure.Load() != nil }

// cause is why it has ended.
func (w *http2Wire) cause() error {
	if cause := w.failure.Load(); cause != nil {
		return *cause
	}
	return nil
}
