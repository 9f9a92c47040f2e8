package admin

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// places is a listener that bounds its connections, in total and for each address. A new
// connection is always accepted, and another one is closed for it. Otherwise a few pods
// could hold all places. Then the kubelet's probe would fail, and the gateway would get no
// traffic.
//
// Places are counted for whole addresses, not for the /64 of an IPv6 address. Clients of
// this port are mostly in the cluster, where the pods of a node often share a /64.
type places struct {
	net.Listener

	total, perClient int

	mu      sync.Mutex
	turn    uint64 // how often a connection has become busy or idle
	taken   map[*place]struct{}
	clients map[netip.Addr]int
}

// Limit bounds the connections of the admin port: 256 in total, 32 from one address. Above
// that, the connection that has been idle for the longest time is closed. The listener
// needs a server from NewServer, which tells it which connections are idle.
func Limit(listener net.Listener) net.Listener {
	return limit(listener, maxConnections, maxPerClient)
}

func limit(listener net.Listener, total, perClient int) *places {
	return &places{
		Listener: listener, total: total, perClient: perClient,
		taken: map[*place]struct{}{}, clients: map[netip.Addr]int{},
	}
}

// Accept returns the next connection.
func (p *places) Accept() (net.Conn, error) {
	raw, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	next := &place{Conn: raw, places: p, client: addressOf(raw)}
	for _, conn := range p.enter(next) {
		_ = conn.Conn.Close()
	}
	return next, nil
}

// enter gives a connection its place. It returns the connections that have lost theirs.
func (p *places) enter(next *place) []*place {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lost []*place
	if p.clients[next.client] >= p.perClient {
		lost = append(lost, p.takeFrom(func(c *place) bool { return c.client == next.client }))
	}
	if len(p.taken) >= p.total {
		lost = append(lost, p.takeFrom(func(*place) bool { return true }))
	}
	p.taken[next] = struct{}{}
	p.clients[next.client]++
	p.turn++
	next.since = p.turn
	return lost
}

// takeFrom takes a place from one of the connections that match. The caller holds the
// mutex, and at least one must match.
func (p *places) takeFrom(matches func(*place) bool) *place {
	var last *place
	for c := range p.taken {
		if matches(c) && (last == nil || p.goesBefore(c, last)) {
			last = c
		}
	}
	p.remove(last)
	return last
}

// goesBefore reports whether a loses its place before b. Idle connections lose theirs
// first, the longest idle one before others. If all are busy, one of the address with the
// most connections loses it. So held polls do not keep out a client with only one
// connection.
func (p *places) goesBefore(a, b *place) bool {
	if a.busy != b.busy {
		return b.busy
	}
	if ofA, ofB := p.clients[a.client], p.clients[b.client]; a.busy && ofA != ofB {
		return ofA > ofB
	}
	return a.since < b.since
}

// remove removes a connection from the count, once. The caller holds the mutex.
func (p *places) remove(c *place) {
	if _, ok := p.taken[c]; !ok {
		return
	}
	delete(p.taken, c)
	if p.clients[c.client]--; p.clients[c.client] == 0 {
		delete(p.clients, c.client)
	}
}

// place is a counted connection.
type place struct {
	net.Conn

	places *places
	client netip.Addr

	// busy means that a request was read and is not answered yet. since is the turn at
	// which busy last changed. Both are guarded by the mutex.
	busy  bool
	since uint64
}

// noteState is http.Server.ConnState. A connection counts as idle until the whole head of
// its next request was read.
func noteState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*place)
	if !ok || (state != http.StateActive && state != http.StateIdle) {
		return
	}
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	c.places.turn++
	c.busy, c.since = state == http.StateActive, c.places.turn
}

// Close closes the connection.
func (c *place) Close() error {
	c.places.mu.Lock()
	c.places.remove(c)
	c.places.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the write side. net/http does that when it answers before it has read
// everything, so that the answer is not lost.
func (c *place) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

// addressOf returns the peer's address, or the zero value if it has none.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}
