package admin

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// places is a listener that bounds its connections, in all and of each address, and lets a
// new one in nevertheless: another one is closed for it. Otherwise few pods could hold all
// places, and the kubelet would take the gateway out of service because its probe gets
// none.
//
// Places are counted by whole addresses, not by the /64 of an IPv6 one: who reaches this
// port is mostly in the cluster, where the pods of a node often share one.
type places struct {
	net.Listener

	total, perClient int

	mu      sync.Mutex
	turn    uint64 // how often a place has begun to be busy or idle
	taken   map[*place]struct{}
	clients map[netip.Addr]int
}

// Limit bounds the connections of the admin port: 256, 32 of them from one address. Above
// that the one that has been idle for the longest time is closed. It takes a server of
// NewServer to know which are idle.
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

// enter gives a connection its place, and returns those that have lost theirs to it.
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

// takeFrom takes a place from one of those that match. It needs the mutex, and that there
// is one.
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

// goesBefore tells which of two loses its place: one that is idle, and the one that has
// been so for longer. Where all are busy it is one of the address with the most, so that
// held polls do not keep out who has one.
func (p *places) goesBefore(a, b *place) bool {
	if a.busy != b.busy {
		return b.busy
	}
	if ofA, ofB := p.clients[a.client], p.clients[b.client]; a.busy && ofA != ofB {
		return ofA > ofB
	}
	return a.since < b.since
}

// remove takes a connection out of the count, once. It needs the mutex.
func (p *places) remove(c *place) {
	if _, ok := p.taken[c]; !ok {
		return
	}
	delete(p.taken, c)
	if p.clients[c.client]--; p.clients[c.client] == 0 {
		delete(p.clients, c.client)
	}
}

// place is a connection that is counted.
type place struct {
	net.Conn

	places *places
	client netip.Addr

	// busy is that a request was read and is not answered. since is which turn it was when
	// that last changed. Both are the mutex's.
	busy  bool
	since uint64
}

// noteState is for http.Server.ConnState. A connection is new, or idle, until the whole
// head of its next request was read.
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

// CloseWrite ends one direction. net/http does so where it answers before it has read all,
// so that the answer is not lost.
func (c *place) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

// addressOf is the other end's address, the zero value where it has none.
func addressOf(conn net.Conn) netip.Addr {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return address.Addr().Unmap()
}
