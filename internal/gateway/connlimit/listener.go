// Package connlimit bounds the connections of a listener, in total and for each client.
package connlimit

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// Limits bound the open connections. 0 means no bound.
type Limits struct {
	// Total bounds all of them.
	Total int
	// PerClient bounds the connections of one client, as clients.Of defines it. 0 means the
	// client's share of Total (clients.Places).
	PerClient int
	// Exempt are the addresses without the bound of PerClient, such as proxies that connect
	// for many clients.
	Exempt []netip.Prefix
}

// Refusal names the limit for which a connection was closed.
type Refusal int

// These are the limits that can refuse a connection.
const (
	// Total means too many connections in total.
	Total Refusal = iota
	// PerClient means too many connections of one client.
	PerClient
	// Unannounced means a connection that does not say whose it is, though it must (package proxyprotocol).
	Unannounced
	// Refusals is how many there are.
	Refusals = iota
)

// Counter counts the connections of one or more listeners and refuses those above its
// limits. It is safe for concurrent use. The zero value has no limits.
type Counter struct {
	// Refused is called for each refused connection. It is optional, and must be set before
	// the first connection.
	Refused func(Refusal)

	limits atomic.Pointer[Limits]

	mu   sync.Mutex
	open clients.Places
}

// SetLimits replaces the limits. Open connections stay open.
func (c *Counter) SetLimits(limits Limits) { c.limits.Store(&limits) }

// Open returns how many connections are open.
func (c *Counter) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open.Taken()
}

// Listen returns a listener that counts its connections. A connection above a limit is
// closed without an answer, because answering would cost what the limit saves.
func (c *Counter) Listen(listener net.Listener) net.Listener {
	return &limited{Listener: listener, counter: c}
}

// ListenUnclaimed does the same for connections that say later whose they are. Until their method Claim is called with the
// address of the client, they count in total alone.
func (c *Counter) ListenUnclaimed(listener net.Listener) net.Listener {
	return &limited{Listener: listener, counter: c, unclaimed: true}
}

// Refuse tells about a connection that somebody else has closed.
func (c *Counter) Refuse(why Refusal) {
	if c.Refused != nil {
		c.Refused(why)
	}
}

// Enter counts something of a client that is no connection of a listener, such as a session of datagrams. Above a limit it
// returns false. The caller must call leave once.
func (c *Counter) Enter(address netip.Addr) (leave func(), ok bool) {
	limits := c.now()
	client := limits.client(address)
	if why, ok := c.enter(client, limits); !ok {
		c.Refuse(why)
		return nil, false
	}
	return func() { c.leave(client) }, true
}

// enter counts a connection of a client. The zero Addr stands for an exempt client. Above a
// limit it returns false and the limit.
func (c *Counter) enter(client netip.Addr, limits *Limits) (Refusal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(client, limits)
}

// move counts a connection of one client as one of another client. Above a limit it stays where it is.
func (c *Counter) move(from, to netip.Addr, limits *Limits) (Refusal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.Release(from)
	why, ok := c.take(to, limits)
	if !ok {
		c.open.Take(from)
	}
	return why, ok
}

// take does what enter does. The caller holds the mutex.
func (c *Counter) take(client netip.Addr, limits *Limits) (Refusal, bool) {
	switch {
	case limits.Total > 0 && c.open.Taken() >= limits.Total:
		return Total, false
	case client == netip.Addr{}:
	case limits.PerClient > 0 && c.open.TakenBy(client) >= limits.PerClient:
		return PerClient, false
	case limits.PerClient <= 0 && limits.Total > 0 && !c.open.Room(client, limits.Total):
		return PerClient, false
	}
	c.open.Take(client)
	return 0, true
}

func (c *Counter) leave(client netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open.Release(client)
}

// limited is a listener whose connections are counted.
type limited struct {
	net.Listener

	counter   *Counter
	unclaimed bool
}

// Accept returns the next connection that is within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limits := l.counter.now()
		var client netip.Addr
		if !l.unclaimed {
			client = limits.client(addressOf(raw))
		}
		why, ok := l.counter.enter(client, limits)
		if ok {
			return newConn(raw, l.counter, client), nil
		}
		_ = raw.Close()
		l.counter.Refuse(why)
	}
}

// now returns the limits.
func (c *Counter) now() *Limits {
	if limits := c.limits.Load(); limits != nil {
		return limits
	}
	return &Limits{}
}

// client returns who counts for an address. The zero Addr stands for an exempt client.
func (l *Limits) client(address netip.Addr) netip.Addr {
	if clients.Within(l.Exempt, address) {
		return netip.Addr{}
	}
	return clients.Of(address)
}

// addressOf returns the peer's address, or the zero value if it has none.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr()
}

// conn is removed from the count when it is closed.
type conn struct {
	net.Conn

	once    sync.Once
	counter *Counter
	client  netip.Addr
}

// newConn keeps the methods of a TCP connection, because net/http uses them.
func newConn(raw net.Conn, counter *Counter, client netip.Addr) net.Conn {
	c := &conn{Conn: raw, counter: counter, client: client}
	if tcp, ok := raw.(*net.TCPConn); ok {
		return &tcpConn{conn: c, TCPConn: tcp}
	}
	return c
}

// Claim makes the connection count for a client. It reports whether the client may have it. It is called once at most, before
// anybody else has the connection.
func (c *conn) Claim(address netip.Addr) bool {
	limits := c.counter.now()
	client := limits.client(address)
	if why, ok := c.counter.move(c.client, client, limits); !ok {
		c.counter.Refuse(why)
		return false
	}
	c.client = client
	return true
}

// Close closes the connection.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.counter.leave(c.client) })
	return err
}

// tcpConn keeps the methods of a TCP connection: closing one direction, and copying in the
// kernel.
type tcpConn struct {
	*net.TCPConn

	conn *conn
}

// Claim makes the connection count for a client.
func (c *tcpConn) Claim(address netip.Addr) bool { return c.conn.Claim(address) }

// Close closes the connection.
func (c *tcpConn) Close() error { return c.conn.Close() }
