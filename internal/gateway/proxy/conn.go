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
	// lingerTimeout bounds how long a closed connection is still read, so that its client
	// can read the last answer. lingerQuiet bounds how long the client may send nothing.
	lingerTimeout = 5 * time.Second
	lingerQuiet   = time.Second
	// maxLingerBytes bounds how much is read meanwhile. maxLingering bounds how many
	// connections linger.
	maxLingerBytes = 16 << 20
	maxLingering   = 1024
)

// clientListener returns connections that close without losing the last answer.
type clientListener struct {
	net.Listener

	port      int32
	clock     clock.PassiveClock
	open      *conns // gets those that are not closed
	lingering *conns
}

// Accept waits for the next connection.
func (l *clientListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.add(raw)
	return &clientConn{Conn: raw, port: l.port, clock: l.clock, open: l.open, lingering: l.lingering}, nil
}

// clientConn is a client's connection, below TLS and net/http.
//
// If bytes arrive for a closed socket, the kernel resets the connection. Then the client
// may lose an answer that it has not read yet. So the connection closes in two steps (RFC
// 9112, 9.6). First the write side closes. The read side closes when the client has closed
// too, or after some time. Bytes that arrive meanwhile are thrown away.
type clientConn struct {
	net.Conn

	port      int32 // of the gateway
	clock     clock.PassiveClock
	open      *conns
	lingering *conns

	ahead   []byte       // bytes of the client that were read already, and come first
	half    halfClose    // belongs to the goroutine that reads
	bounded atomic.Bool  // reads have a deadline
	streams atomic.Bool  // the response is a stream that nothing bounds
	waiting waiting      // for a reset
	muted   atomic.Bool  // nothing more is sent
	over    atomic.Bool  // bytes that still arrive are thrown away
	readers atomic.Int32 // calls in Read
	closed  atomic.Bool
	gone    atomic.Bool // the client has closed, or reading has failed

	// checked is the Identity of the ClientCheck by which the client was let in. Nil: there was none.
	checked atomic.Pointer[string]
	// identity is who the client has proven to be. Nil: nobody.
	identity atomic.Pointer[clientIdentity]

	requests atomic.Int64 // HTTP/2 requests
	resets   atomic.Int64 // HTTP/2 requests that the client reset at once
}

// Read reads from the client, until finish is called.
func (c *clientConn) Read(p []byte) (int, error) {
	if c.over.Load() {
		return 0, io.EOF
	}
	c.readers.Add(1)
	defer c.readers.Add(-1)
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	if c.awaitsReset() {
		if err := c.awaitReset(nil); err != nil {
			return 0, c.lose(err)
		}
	}
	n, err := c.fetch(p)
	if c.isEnd(p, err) {
		err = c.awaitReset(err)
	}
	return n, c.lose(err)
}

// lose notes that nothing more can be read, if so.
func (c *clientConn) lose(err error) error {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.gone.Store(true)
	}
	return err
}

// finish makes the connection throw away all further bytes: they are neither a body nor a
// request.
func (c *clientConn) finish() { c.over.Store(true) }

// CloseWrite closes the write side.
func (c *clientConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// Close closes the connection. If the client may still be sending, only the write side
// closes at first. If a Read is running, the caller wants to end it, so everything closes.
func (c *clientConn) Close() error {
	c.open.remove(c.Conn)
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

// linger reads and throws away bytes until the client has closed too.
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

// clientConnKey is the context key of a request's connection.
type clientConnKey struct{}

func withClientConn(ctx context.Context, conn net.Conn) context.Context {
	secure, isSecure := conn.(*tls.Conn)
	if isSecure {
		conn = secure.NetConn()
	}
	if client, ok := conn.(*clientConn); ok {
		client.half.secure = isSecure
		return context.WithValue(ctx, clientConnKey{}, client)
	}
	return ctx
}

// clientConnOf returns a request's connection. It is nil if the request did not come
// through a Server.
func clientConnOf(r *http.Request) *clientConn {
	client, _ := r.Context().Value(clientConnKey{}).(*clientConn)
	return client
}

// portOf returns the port on which a request came in. It is 0 if the request did not come
// through a Server.
func portOf(r *http.Request) int32 {
	if client := clientConnOf(r); client != nil {
		return client.port
	}
	return 0
}

const (
	// soonReset defines a quick reset: the client resets a request within this time after
	// its beginning. A connection with at least fewRequests requests is closed when more
	// than half of them were reset quickly. Such a client causes work for the gateway and
	// its backends, and takes no answers.
	soonReset   = time.Second
	fewRequests = 500
)

// watchResets closes an HTTP/2 connection whose client resets most of its requests quickly.
func (e *call) watchResets() {
	conn := clientConnOf(e.r)
	if conn == nil {
		return
	}
	requests := conn.requests.Add(1)
	if e.r.Context().Err() == nil || e.Clock.Since(e.Start) > soonReset {
		return
	}
	if resets := conn.resets.Add(1); requests >= fewRequests && 2*resets > requests {
		_ = conn.Conn.Close()
	}
}

// finishConnection makes sure that no further bytes of the connection are read as this
// request's body or as another request.
func (e *call) finishConnection() {
	if conn := clientConnOf(e.r); conn != nil {
		conn.finish()
	}
}
