// Package connlimit bounds the connections that a listener takes, in all and of each client.
package connlimit

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// Limits bound the connections that are open at a time. 0 is no bound.
type Limits struct {
	// Total bounds all of them.
	Total int
	// PerClient bounds those of one client, which is what clients.Of says. 0: its
	// share of Total (clients.Places).
	PerClient int
	// Exempt are the addresses for which PerClient does not hold, such as proxies that
	// connect for many clients.
	Exempt []netip.Prefix
}

// Refusal is which limit a connection was closed for.
type Refusal int

// The limits that refuse.
const (
	// Total is that there were too many connections.
	Total Refusal = iota
	// PerClient is that there were too many of the client.
	PerClient
)

// Counter counts the connections of one or more listeners and refuses those above its
// limits. It is safe for concurrent use. The zero value has no limits.
type Counter struct {
	// Refused is called for each connection that is closed at once. Optional; it is set
	// before the first connection.
	Refused func(Refusal)

	limits atomic.Pointer[Limits]

	mu   sync.Mutex
	open clients.Places
}

// SetLimits replaces the limits. Connections that are open stay.
func (c *Counter) SetLimits(limits Limits) { c.limits.Store(&limits) }

// Open returns how many connections are open.
func (c *Counter) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open.Taken()
}

// Listen returns the listener with its connections counted. One above a limit is closed
// without a word: an answer would cost what the limit is to save.
func (c *Counter) Listen(listener net.Listener) net.Listener {
	return &limited{Listener: listener, counter: c}
}

// enter counts a connection of a client, the zero Addr for one that is exempt. It reports
// false, and why, above a limit.
func (c *Counter) enter(client netip.Addr, limits *Limits) (Refusal, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
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

	counter *Counter
}

// Accept returns the next connection that is within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		limits := l.counter.limits.Load()
		if limits == nil {
			limits = &Limits{}
		}
		client := clients.Of(addressOf(raw))
		if clients.Within(limits.Exempt, addressOf(raw)) {
			client = netip.Addr{}
		}
		why, ok := l.counter.enter(client, limits)
		if ok {
			return newConn(raw, l.counter, client), nil
		}
		_ = raw.Close()
		if l.counter.Refused != nil {
			l.counter.Refused(why)
		}
	}
}

// addressOf is the other end's address, the zero value where it has none.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr()
}

// conn leaves the count when it is closed.
type conn struct {
	net.Conn

	once    sync.Once
	counter *Counter
	client  netip.Addr
}

// newConn keeps what net/http asks of a TCP connection.
func newConn(raw net.Conn, counter *Counter, client netip.Addr) net.Conn {
	c := &conn{Conn: raw, counter: counter, client: client}
	if tcp, ok := raw.(*net.TCPConn); ok {
		return &tcpConn{conn: c, TCPConn: tcp}
	}
	return c
}

// Close closes the connection.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.counter.leave(c.client) })
	return err
}

// tcpConn is a connection with all that a TCP connection can do, such as to end one
// direction and to be copied within the system.
type tcpConn struct {
	*net.TCPConn

	conn *conn
}

// Close closes the connection.
func (c *tcpConn) Close() error { return c.conn.Close() }
