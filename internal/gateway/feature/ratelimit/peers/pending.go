package peers

import (
	"net"
	"net/netip"
	"sync"
)

const (
	// maxPending bounds the connections that have proved nothing yet, maxPendingEach those of one address.
	maxPending     = 64
	maxPendingEach = 8
)

// pending are connections that have proved nothing yet. A new one is always accepted, and an older one is closed for it.
// Otherwise a few pods that say nothing could keep the replicas apart.
type pending struct {
	mu    sync.Mutex
	conns []net.Conn // the oldest first
	of    map[net.Conn]netip.Addr
	each  map[netip.Addr]int
}

func newPending() *pending {
	return &pending{of: map[net.Conn]netip.Addr{}, each: map[netip.Addr]int{}}
}

// enter adds a connection. One of an address that has too many is closed in the place of its oldest one, and when there are
// too many in all, the oldest one of the address with the most.
func (p *pending) enter(conn net.Conn) bool {
	address, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	client := address.Addr().Unmap()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.each[client] >= maxPendingEach:
		p.closeOldest(client)
	case len(p.conns) >= maxPending:
		p.closeOldest(p.most())
	}
	p.conns = append(p.conns, conn)
	p.of[conn] = client
	p.each[client]++
	return true
}

func (p *pending) most() (most netip.Addr) {
	for client, number := range p.each {
		if number > p.each[most] {
			most = client
		}
	}
	return most
}

func (p *pending) closeOldest(client netip.Addr) {
	for _, conn := range p.conns {
		if p.of[conn] == client {
			_ = conn.Close()
			p.remove(conn)
			return
		}
	}
}

// leave removes a connection, if it is there.
func (p *pending) leave(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(conn)
}

func (p *pending) remove(conn net.Conn) {
	client, known := p.of[conn]
	if !known {
		return
	}
	delete(p.of, conn)
	if p.each[client]--; p.each[client] == 0 {
		delete(p.each, client)
	}
	for i := range p.conns {
		if p.conns[i] == conn {
			p.conns = append(p.conns[:i], p.conns[i+1:]...)
			return
		}
	}
}
