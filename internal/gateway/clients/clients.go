// Package clients defines what counts as one client. It also shares a limited number of
// places among clients, or among other owners, so that none takes all.
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

// Places counts the places that each client has taken.
type Places = Shares[netip.Addr]

// Shares counts the places that each owner has taken. In the zero value none is taken. It is
// not safe for concurrent use.
type Shares[Owner comparable] struct {
	taken  int
	owners map[Owner]int
}

// Taken returns how many places are taken.
func (s *Shares[Owner]) Taken() int { return s.taken }

// TakenBy returns how many places an owner has.
func (s *Shares[Owner]) TakenBy(owner Owner) int { return s.owners[owner] }

// perFree is how many places an owner may have for each that is free.
const perFree = 3

// Room reports whether the owner may take another place. There must be a free one, and the
// owner must have fewer than three for each free one. So the first one gets at most three
// quarters of all places, and each further one at most three quarters of the rest. A new
// owner finds a place until many owners have taken all. Network switches share their buffers
// in the same way ("dynamic threshold", Choudhury and Hahne, 1998). The zero Owner, such as
// the zero Addr, means no particular one; it may take any free place.
func (s *Shares[Owner]) Room(owner Owner, bound int) bool { return s.RoomFor(owner, 1, bound) }

// RoomFor reports whether the owner may take so many more places at once, such as bytes.
func (s *Shares[Owner]) RoomFor(owner Owner, places, bound int) bool {
	var nobody Owner
	free := bound - s.taken - (places - 1) // when it takes the last of them
	return free > 0 && (owner == nobody || s.owners[owner]+places-1 < perFree*free)
}

// Take counts one more place of the owner.
func (s *Shares[Owner]) Take(owner Owner) { s.Add(owner, 1) }

// Add counts so many more places of the owner.
func (s *Shares[Owner]) Add(owner Owner, places int) {
	s.taken += places
	var nobody Owner
	if owner == nobody {
		return
	}
	if s.owners == nil {
		s.owners = map[Owner]int{}
	}
	s.owners[owner] += places
}

// Release counts one place of the owner less.
func (s *Shares[Owner]) Release(owner Owner) { s.Subtract(owner, 1) }

// Subtract counts so many places of the owner less.
func (s *Shares[Owner]) Subtract(owner Owner, places int) {
	s.taken -= places
	var nobody Owner
	if owner == nobody {
		return
	}
	if s.owners[owner] -= places; s.owners[owner] <= 0 {
		delete(s.owners, owner)
	}
}
