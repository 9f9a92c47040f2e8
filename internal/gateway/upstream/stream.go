package upstream

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// maxConnects is how many endpoints are tried for a connection.
const maxConnects = 3

// Connection is a connection to an endpoint whose bytes are the caller's.
type Connection struct {
	net.Conn

	// Endpoint is its address.
	Endpoint string

	leave func()
}

// Close closes the connection.
func (c *Connection) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite closes the write side.
func (c *Connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Connect opens a connection for a client, within the limits of the Service, with TLS if the Service has it. One endpoint after
// another is tried. The error is an *Error.
func (s *Service) Connect(ctx context.Context, client netip.Addr) (*Connection, error) {
	pass := pass{client: client, exclusive: true}
	if _, failure := s.gate.enter(ctx, pass, maxPendingWait); failure != nil {
		return nil, failure
	}
	connected := false
	defer func() {
		if !connected { // an error or a panic
			s.gate.leave(pass)
		}
	}()
	var tried []*endpoint
	var search search
	defer search.leave()
	for failures := 0; ; {
		e := search.choose(s, func() *endpoint { return s.pick(tried) })
		if e == nil {
			return nil, &Error{Kind: NoEndpoints, Err: errNoEndpoints}
		}
		raw, failure := e.connect(ctx, &search)
		if failure == nil {
			connected = true
			return &Connection{Conn: raw, Endpoint: e.address, leave: sync.OnceFunc(func() { e.leave(); s.gate.leave(pass) })}, nil
		}
		if search.goesOn(s, e, failure) && ctx.Err() == nil {
			tried = search.next(s, tried, e)
			continue
		}
		failures++
		if failure.Kind != Connect || failure.hangs || failures == min(maxConnects, s.Endpoints()) {
			return nil, failure
		}
		search.restart()
		tried = append(tried, e)
	}
}

// connect opens a connection, and counts the result for the health of the endpoint.
func (e *endpoint) connect(ctx context.Context, search *search) (conn net.Conn, failure *Error) {
	e.inFlight.Add(1)
	defer func() {
		if conn == nil { // an error or a panic
			e.leave()
		}
	}()
	s := e.service
	var raw net.Conn
	var err error
	if search.wait > 0 {
		raw, err = search.dial(ctx, e, "", s.gate.force, func(raw net.Conn) { _ = raw.Close() })
	} else {
		raw, err = s.dialStream(ctx, e)
	}
	if err != nil {
		failure = connectError(ctx, e.address, err)
		if failure.raisesSuspicion() {
			s.suspect(ctx, e, true)
		}
		return nil, failure
	}
	if e.failures.Load() != 0 || e.ejections.Load() != 0 {
		s.succeeded(e)
	}
	return raw, nil
}

// dialStream opens a connection that is counted, though it may be above the limit for the gateway's own ones.
func (s *Service) dialStream(ctx context.Context, e *endpoint) (net.Conn, error) {
	s.gate.force()
	return dial(ctx, e, s.gate.closed, "")
}

// askStream is the gateway's own attempt to reach a suspected endpoint, of which it knows nothing but the address.
func (s *Service) askStream(ctx context.Context, e *endpoint) error {
	raw, err := s.dialStream(ctx, e)
	if err != nil {
		if failure := connectError(ctx, e.address, err); isOurs(failure.Err) {
			return nil
		}
		return err
	}
	_ = raw.Close()
	return nil
}

// Session is the place of a client of datagrams at an endpoint.
type Session struct {
	// Endpoint is the address of the endpoint.
	Endpoint string

	leave func()
}

// Close gives the place back.
func (s *Session) Close() { s.leave() }

// Begin chooses an endpoint for the datagrams of a client, within the limits of the Service. The error is an *Error.
func (s *Service) Begin(ctx context.Context, client netip.Addr) (*Session, error) {
	pass := pass{client: client}
	if _, failure := s.gate.enter(ctx, pass, 0); failure != nil {
		return nil, failure
	}
	begun := false
	defer func() {
		if !begun { // an error or a panic
			s.gate.leave(pass)
		}
	}()
	e := s.pick(nil)
	if e == nil {
		return nil, &Error{Kind: NoEndpoints, Err: errNoEndpoints}
	}
	e.inFlight.Add(1)
	begun = true
	return &Session{Endpoint: e.address, leave: sync.OnceFunc(func() { e.leave(); s.gate.leave(pass) })}, nil
}
