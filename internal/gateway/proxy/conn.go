package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lingerTimeout is how long a connection that was closed is read from at most, so that
	// its client can read the last answer, and lingerQuiet how long it may send nothing.
	lingerTimeout = 5 * time.Second
	lingerQuiet   = time.Second
	// maxLingerBytes bounds what is read meanwhile, and maxLingering the connections.
	maxLingerBytes = 16 << 20
	maxLingering   = 1024
)

// clientListener hands out connections that close without losing the last answer.
type clientListener struct {
	net.Listener

	clock     clock.PassiveClock
	lingering *conns
}

// Accept waits for the next connection.
func (l *clientListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &clientConn{Conn: raw, clock: l.clock, lingering: l.lingering}, nil
}

// clientConn is the connection of a client, below TLS and net/http.
//
// When bytes come for a socket that is closed the system resets the connection, and the
// client may lose an answer that it has not read yet. So the connection closes in two steps
// (RFC 9112, 9.6): its own end first, and the other when the client has closed or some time
// has passed. What comes meanwhile is thrown away.
type clientConn struct {
	net.Conn

	clock     clock.PassiveClock
	lingering *conns

	over    atomic.Bool  // nothing that still comes is for anybody
	readers atomic.Int32 // in Read
	closed  atomic.Bool
	gone    atomic.Bool // the client has closed, or cannot be heard any more

	requests atomic.Int64 // of HTTP/2
	resets   atomic.Int64 // those that the client took back at once
}

// Read reads what the client sends, up to the end that finish makes.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.over.Load() {
		return 0, io.EOF
	}
	c.readers.Add(1)
	defer c.readers.Add(-1)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.gone.Store(true)
	}
	return n, err
}

// finish makes everything that comes from now on nobody's: it is neither a body nor a request.
func (c *clientConn) finish() { c.over.Store(true) }

// CloseWrite ends the direction to the client.
func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Close closes the connection, to the client first where it may still be sending. Whoever
// closes it while it is read wants that to end.
func (c *clientConn) Close() error {
	if c.closed.Swap(true) || c.readers.Load() > 0 || c.gone.Load() || !c.lingering.addUpTo(c.Conn, maxLingering) {
		return c.Conn.Close()
	}
	if c.CloseWrite() != nil {
		c.lingering.remove(c.Conn)
		return c.Conn.Close()
	}
	go c.linger()
	return nil
}

// linger reads until the client has closed too.
func (c *clientConn) linger() {
	defer c.lingering.remove(c.Conn)
	defer c.Conn.Close()
	buffer := make([]byte, 4<<10)
	end := c.clock.Now().Add(lingerTimeout)
	for read := 0; read < maxLingerBytes; {
		until := c.clock.Now().Add(lingerQuiet)
		if end.Before(until) {
			until = end
		}
		if c.SetReadDeadline(until) != nil {
			return
		}
		n, err := c.Conn.Read(buffer)
		if err != nil {
			return
		}
		read += n
	}
}

// clientConnKey is where a request's context has its connection.
type clientConnKey struct{}

func withClientConn(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if client, ok := conn.(*clientConn); ok {
		return context.WithValue(ctx, clientConnKey{}, client)
	}
	return ctx
}

// clientConnOf returns the connection of a request, nil if it did not come through a Server.
func clientConnOf(r *http.Request) *clientConn {
	client, _ := r.Context().Value(clientConnKey{}).(*clientConn)
	return client
}

const (
	// soonReset is how soon after its beginning a request is taken back at once. A connection
	// on which that is so for more than half of at least fewRequests ends: its client makes
	// the gateway and its backends work, and takes no answers.
	soonReset   = time.Second
	fewRequests = 500
)

// watchResets ends the connection of HTTP/2 whose client takes most of its requests back.
func (e *exchange) watchResets() {
	conn := clientConnOf(e.r)
	if conn == nil {
		return
	}
	requests := conn.requests.Add(1)
	if e.r.Context().Err() == nil || e.handler.options.Clock.Since(e.start) > soonReset {
		return
	}
	if resets := conn.resets.Add(1); requests >= fewRequests && 2*resets > requests {
		_ = conn.Conn.Close()
	}
}
