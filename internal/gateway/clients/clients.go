// Package clients says what counts as one client, and divides the places of a bound among
// clients so that none of them takes all.
package clients

import "net/netip"

// Of returns what counts as one client: an IPv4 address, or the /64 of an IPv6 address,
// which is what one household or one machine gets to itself.
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

// Places counts the places that clients take. The zero value has none taken. It is not safe
// for concurrent use.
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

// Room reports whether the client may have another of so many places: there is one, and the
// client has fewer than three for each that is free. So one client gets three quarters at
// most, each further one three quarters of what is left, and who comes new finds a place
// until many have taken all. This is the dynamic threshold by which switches share their
// buffers (Choudhury and Hahne, 1998). The zero Addr is nobody in particular and may take
// what there is.
func (p *Places) Room(client netip.Addr, bound int) bool {
	free := bound - p.taken
	return free > 0 && (client == netip.Addr{} || p.clients[client] < perFree*free)
}

// Take counts a place of the client.
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

// Release counts a place of the client no more.
func (p *Places) Release(client netip.Addr) {
	p.taken--
	if client == (netip.Addr{}) {
		return
	}
	if p.clients[client]--; p.clients[client] <= 0 {
		delete(p.clients, client)
	}
}
