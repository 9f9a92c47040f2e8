// Package clients defines what counts as one client. It also shares a limited number of
// places among clients, so that no client takes all.
package clients

import "net/netip"

// Of returns what counts as one client: an IPv4 address, or the /64 of an IPv6 address. One
// household or one machine usually gets a whole /64.
func Of(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address
	}
	prefix, err := address.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.Addr()
}

// Within reports whether an address is in one of the ranges.
func Within(ranges []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	for _, r := range ranges {
		if r.Contains(address) {
			return true
		}
	}
	return false
}

// Places counts the places that each client has taken. In the zero value none is taken. It
// is not safe for concurrent use.
type Places struct {
	taken   int
	clients map[netip.Addr]int
}

// Taken returns how many places are taken.
func (p *Places) Taken() int { return p.taken }

// TakenBy returns how many places a client has.
func (p *Places) TakenBy(client netip.Addr) int { return p.clients[client] }

// perFree is how many places a client may have for each that is free.
const perFree = 3

// Room reports whether the client may take another place. There must be a free one, and the
// client must have fewer than three for each free one. So the first client gets at most
// three quarters of all places, and each further client at most three quarters of the rest.
// A new client finds a place until many clients have taken all. Network switches share
// their buffers in the same way ("dynamic threshold", Choudhury and Hahne, 1998). The zero
// Addr means no particular client; it may take any free place.
func (p *Places) Room(client netip.Addr, bound int) bool {
	free := bound - p.taken
	return free > 0 && (client == netip.Addr{} || p.clients[client] < perFree*free)
}

// Take counts one more place of the client.
func (p *Places) Take(client netip.Addr) {
	p.taken++
	if client == (netip.Addr{}) {
		return
	}
	if p.clients == nil {
		p.clients = map[netip.Addr]int{}
	}
	p.clients[client]++
}

// Release counts one place of the client less.
func (p *Places) Release(client netip.Addr) {
	p.taken--
	if client == (netip.Addr{}) {
		return
	}
	if p.clients[client]--; p.clients[client] <= 0 {
		delete(p.clients, client)
	}
}
