package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/sockets"
)

// maxEvictions bounds how often reserve tries to make room for a connection.
const maxEvictions = 100

// pool keeps HTTP/1.1 connections to an endpoint. It reuses the last used one first, so
// that unused ones become old and are closed.
type pool struct {
	address  string
	endpoint *endpoint
	options  *Options
	gate     *gate
	makeRoom func() bool // closes an idle connection of the Service
	windows  *windows

	mu      sync.Mutex
	idle    []*conn
	drained bool
}

func newPool(e *endpoint, service *Service) *pool {
	return &pool{
		address: e.address, endpoint: e, options: &service.options,
		gate: &service.gate, makeRoom: service.evict, windows: service.windows,
	}
}

func (p *pool) roundTrip(ctx context.Context, req *Request, fresh bool) (*Response, *Error) {
	var c *conn
	if !fresh {
		c = p.get()
	}
	if c == nil {
		raw, failure := p.dial(ctx, req)
		if failure != nil {
			return nil, failure
		}
		c = p.begin(raw)
	}
	return c.roundTrip(ctx, req)
}

// begin returns a new connection for requests.
func (p *pool) begin(raw net.Conn) *conn {
	c := newConn(raw, p)
	c.boundUnread(c.narrowBuffer())
	return c
}

// dial opens a connection, within the deadline of the request, and for as long as its search allows.
func (p *pool) dial(ctx context.Context, req *Request) (net.Conn, *Error) {
	dialing := ctx
	if !req.Deadline.IsZero() {
		var cancel context.CancelFunc
		dialing, cancel = context.WithTimeout(ctx, req.Deadline.Sub(p.options.Clock.Now()))
		defer cancel()
	}
	var raw net.Conn
	var err error
	if req.search.wait > 0 {
		raw, err = req.search.dial(dialing, p.endpoint, "http/1.1", p.reserve, func(raw net.Conn) { p.put(p.begin(raw)) })
	} else {
		p.reserve()
		raw, err = dial(dialing, p.endpoint, p.gate.closed, "http/1.1")
	}
	switch {
	case err == nil:
		return raw, nil
	case ctx.Err() == nil && dialing.Err() != nil:
		return nil, &Error{Kind: Timeout, Endpoint: p.address, Err: err}
	}
	return nil, connectError(ctx, p.address, err)
}

// reserve counts a connection that will be opened. If the limit is reached, one of the
// connections is idle, because the gate admits no more requests than connections. It may be
// in use for a moment, so reserve tries several times.
func (p *pool) reserve() {
	for range maxEvictions {
		if p.gate.open() {
			return
		}
		p.makeRoom()
	}
	p.gate.force()
}

// get returns a connection that can be reused, or nil.
func (p *pool) get() *conn {
	for {
		c := p.pop()
		if c == nil {
			return nil
		}
		if p.options.Clock.Since(c.idleSince) < p.options.IdleTimeout && c.alive.unchanged() {
			c.reused = true
			return c
		}
		_ = c.raw.Close()
	}
}

func (p *pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	c := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return c
}

// put keeps a connection for another request, if there is room.
func (p *pool) put(c *conn) {
	c.idleSince = p.options.Clock.Now()
	p.mu.Lock()
	keep := !p.drained && len(p.idle) < p.options.MaxIdle
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		_ = c.raw.Close()
	}
}

// evict closes the connection that was idle for the longest time.
func (p *pool) evict() bool {
	p.mu.Lock()
	if len(p.idle) == 0 {
		p.mu.Unlock()
		return false
	}
	c := p.idle[0]
	p.idle = slices.Delete(p.idle, 0, 1)
	p.mu.Unlock()
	_ = c.raw.Close()
	return true
}

// tidy closes connections that were idle for too long, or that the endpoint has closed.
func (p *pool) tidy(now time.Time) {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	kept := idle[:0]
	for _, c := range idle {
		if now.Sub(c.idleSince) < p.options.IdleTimeout && c.alive.unchanged() {
			kept = append(kept, c)
			continue
		}
		_ = c.raw.Close()
	}
	clear(idle[len(kept):])
	p.mu.Lock()
	if !p.drained {
		p.idle, kept = append(kept, p.idle...), nil
	}
	p.mu.Unlock()
	for _, c := range kept {
		_ = c.raw.Close()
	}
}

// drain closes idle connections, and each other one as soon as it is idle.
func (p *pool) drain() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.drained = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		_ = c.raw.Close()
	}
}

// dial opens a connection that was counted, until it calls uncount. It uses TLS if the Service does.
// It may run on a goroutine of the transport for HTTP/2.
func dial(ctx context.Context, e *endpoint, uncount func(), application string) (conn net.Conn, err error) {
	options, with := &e.service.options, e.service.secure
	defer options.Panics.CatchError("connect to an endpoint", &err)
	ctx, cancel := context.WithTimeout(ctx, options.DialTimeout)
	defer cancel()
	var opened net.Conn
	connected := false
	defer func() {
		switch {
		case connected:
		case opened == nil:
			uncount()
		default: // an error or a panic
			_ = opened.Close()
		}
	}()
	raw, err := options.Dial(ctx, e.address)
	if err != nil {
		return nil, err
	}
	sockets.BoundUnsent(raw)
	counted := &countedConn{Conn: raw, uncount: uncount}
	e.add(counted)
	opened = counted
	if with == nil {
		connected = true
		return opened, nil
	}
	secure := tls.Client(newRecords(opened), with.config(application))
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	connected = true
	return secure, nil
}

// connectError distinguishes a client that has gone from an endpoint that cannot be
// reached.
func connectError(ctx context.Context, address string, err error) *Error {
	if ctx.Err() != nil {
		return &Error{Kind: Canceled, Endpoint: address, Err: context.Cause(ctx)}
	}
	return &Error{Kind: Connect, Endpoint: address, Err: err, unprocessed: true, hangs: errors.Is(err, errHangs)}
}
