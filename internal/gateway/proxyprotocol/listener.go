// Package proxyprotocol accepts connections that begin with a header of the PROXY protocol, by which a load balancer tells the
// address of the client.
//
// A header is believed, so three things hold. A connection that does not begin with one is closed, and nothing of it is read as a
// request. One from an address that is no source is closed before anything of it is read. And the header is read once: what follows
// is the client's, also where it looks like a header.
//
// https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt
package proxyprotocol

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/pires/go-proxyproto"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// bufferBytes is how much is read at a time until the header has been read.
const bufferBytes = 512

// Options configures a listener.
type Options struct {
	// Sources are the addresses from which connections may come. Empty: all.
	Sources []netip.Prefix
	// Timeout bounds how long a header may take. Required.
	Timeout time.Duration
	// Clock tells the time. Required.
	Clock clock.PassiveClock
	// Refused is called for each connection that is closed because of its source or its header. Optional.
	Refused func()
	// Panics is told of a panic of reading a header, which closes the connection. Nil: it ends the process.
	Panics panics.Reporter
}

// claimer is a connection that counts for its client as soon as that is known.
type claimer interface {
	// Claim reports whether the client may have it.
	Claim(client netip.Addr) bool
}

// listener returns connections whose headers have been read.
type listener struct {
	net.Listener

	options Options
	// accepted gets connections, and errors of the listener below.
	accepted chan accepted
	// open ends with the listener.
	open context.Context // the listener is what it bounds
	end  context.CancelFunc
}

type accepted struct {
	conn net.Conn
	err  error
}

// Listen returns a listener of the connections of another one. It reads the headers in the background, so that a connection which
// is slow with its own holds up no other. What bounds the number of connections has to be below.
func Listen(below net.Listener, options Options) net.Listener {
	l := &listener{Listener: below, options: options, accepted: make(chan accepted)}
	l.open, l.end = context.WithCancel(context.Background()) //nolint:forbidigo // it ends with the listener, as Close says
	go l.run()
	return l
}

// Accept returns the next connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case next := <-l.accepted:
		return next.conn, next.err
	case <-l.open.Done():
		return nil, net.ErrClosed
	}
}

// Close closes the listener. Connections whose headers are still read are closed, too.
func (l *listener) Close() error {
	l.end()
	return l.Listener.Close()
}

func (l *listener) run() {
	for {
		raw, err := l.Listener.Accept()
		switch {
		case err == nil:
			go l.receive(raw)
		case errors.Is(err, net.ErrClosed):
			l.end()
			return
		case !l.deliver(accepted{err: err}):
			return
		}
	}
}

// receive reads the header of a connection, and delivers the connection.
func (l *listener) receive(raw net.Conn) {
	defer l.options.Panics.CatchClosing("read a header of the PROXY protocol", raw)
	stop := context.AfterFunc(l.open, func() { _ = raw.Close() }) // ends reading
	defer stop()
	conn, ok := l.read(raw)
	if !stop() {
		return
	}
	if !ok {
		if l.options.Refused != nil {
			l.options.Refused()
		}
		_ = raw.Close()
		return
	}
	if counted, is := raw.(claimer); is && !counted.Claim(addressOf(conn.RemoteAddr())) {
		_ = raw.Close() // who counts has told it
		return
	}
	if !l.deliver(accepted{conn: conn}) {
		_ = raw.Close()
	}
}

// deliver reports whether somebody has taken it.
func (l *listener) deliver(next accepted) bool {
	select {
	case l.accepted <- next:
		return true
	case <-l.open.Done():
		return false
	}
}

// read reads the header of a connection.
func (l *listener) read(raw net.Conn) (*conn, bool) {
	if len(l.options.Sources) > 0 && !clients.Within(l.options.Sources, addressOf(raw.RemoteAddr())) {
		return nil, false
	}
	if raw.SetReadDeadline(l.options.Clock.Now().Add(l.options.Timeout)) != nil {
		return nil, false
	}
	rest := bufio.NewReaderSize(raw, bufferBytes)
	header, err := proxyproto.Read(rest)
	if err != nil || raw.SetReadDeadline(time.Time{}) != nil {
		return nil, false
	}
	c := &conn{Conn: raw, rest: rest, client: raw.RemoteAddr()}
	if header.Command.IsLocal() { // the load balancer itself, for example to see whether somebody answers
		return c, true
	}
	source, _, ok := header.TCPAddrs()
	if !ok {
		return nil, false
	}
	c.client = source
	return c, true
}

// addressOf returns the zero value for an address that is none of IP.
func addressOf(address net.Addr) netip.Addr {
	of, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Addr{}
	}
	return of.Addr()
}

// conn is a connection without its header.
type conn struct {
	net.Conn

	// rest has what came with the header. Nil: it has been read.
	rest   *bufio.Reader
	client net.Addr
}

// RemoteAddr returns the address of the client.
func (c *conn) RemoteAddr() net.Addr { return c.client }

// Read reads what follows the header. As for every connection here, one goroutine reads at a time.
func (c *conn) Read(p []byte) (int, error) {
	if c.rest == nil {
		return c.Conn.Read(p)
	}
	if c.rest.Buffered() == 0 {
		c.rest = nil
		return c.Conn.Read(p)
	}
	return c.rest.Read(p[:min(len(p), c.rest.Buffered())])
}

// SyscallConn is that of the connection below.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if system, ok := c.Conn.(syscall.Conn); ok {
		return system.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite closes the write side.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}
