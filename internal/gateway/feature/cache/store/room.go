package store

import (
	"container/list"
	"net/netip"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
)

// Room is shared out in two ways.
//
// When it is full, the namespace with the most makes room, and in it the Service with the most: the response that was not used for
// the longest time goes. Whoever has the most himself, and nothing that can go, gets no more. So nobody pushes out what others have
// by asking for much of his own.
//
// Responses under way hold room that cannot be taken from them: what comes, and what is given to a client that takes it slowly. All
// of them hold at most half of it, of which each namespace, Service and client has a share (clients.Shares).

// namespace has the shelves of its Services.
type namespace struct {
	used     int64
	free     int // entries that can go
	services map[string]*shelf
}

// shelf is what a Service has.
type shelf struct {
	used int64
	// recent are the entries that can go, the one that was used last in front. Those that are lent are not among them: to remove
	// them would free nothing.
	recent *list.List
}

// slack is by how much one may come to have less than another before that one makes room. It bounds the work of choosing.
const slack = 64 << 10

// shelfOf needs mu held.
func (s *Store) shelfOf(b Backend) (*namespace, *shelf) {
	in := s.namespaces[b.Namespace]
	if in == nil {
		in = &namespace{services: map[string]*shelf{}}
		s.namespaces[b.Namespace] = in
	}
	on := in.services[b.Service]
	if on == nil {
		on = &shelf{recent: list.New()}
		in.services[b.Service] = on
	}
	return in, on
}

// count counts bytes of a backend, or gives them back. It needs mu held, and room.
func (s *Store) count(b Backend, size int64) {
	in, on := s.shelfOf(b)
	s.used += size
	in.used += size
	on.used += size
	if on.used == 0 && on.recent.Len() == 0 {
		delete(in.services, b.Service)
	}
	if len(in.services) == 0 {
		delete(s.namespaces, b.Namespace)
	}
}

// countEntry counts an entry, and its body unless another entry with it is counted. It needs mu held, and room.
func (s *Store) countEntry(e *entry) {
	size := e.size
	if e.body.entries++; e.body.entries == 1 {
		size += int64(cap(e.body.bytes))
	}
	s.count(e.backend, size)
}

// uncount gives back what an entry takes that is neither kept nor lent. It needs mu held.
func (s *Store) uncount(e *entry) {
	if e.kept || e.lent > 0 {
		return
	}
	size := e.size
	if e.body.entries--; e.body.entries == 0 {
		size += int64(cap(e.body.bytes))
	}
	s.count(e.backend, -size)
}

// shelve and unshelve need mu held.
func (s *Store) shelve(e *entry) {
	if !e.kept || e.lent > 0 {
		return
	}
	in, on := s.shelfOf(e.backend)
	in.free++
	e.onShelf = on.recent.PushFront(e)
}

func (s *Store) unshelve(e *entry) {
	if e.onShelf == nil {
		return
	}
	in, on := s.shelfOf(e.backend)
	in.free--
	on.recent.Remove(e.onShelf)
	e.onShelf = nil
}

// makeRoom makes room for bytes of a backend. It returns false if there is none for it. It needs mu held.
func (s *Store) makeRoom(b Backend, size int64) bool {
	for s.used+size > s.room {
		in, on, enough := s.richest(b, size)
		if on == nil {
			return false
		}
		for {
			s.remove(on.recent.Back().Value.(*entry))
			s.evicted++
			if s.used+size <= s.room || on.recent.Len() == 0 || enough(in, on) {
				break
			}
		}
	}
	return true
}

// richest finds who has to make room for bytes of a backend, and tells when it has made enough for others to come next. on is nil if
// nobody has as much as the backend would have. It needs mu held.
func (s *Store) richest(b Backend, size int64) (in *namespace, on *shelf, enough func(*namespace, *shelf) bool) {
	own, ownShelf := s.shelfOf(b)
	defer s.count(b, 0) // it may be empty
	var first, second ranking[*namespace]
	for _, n := range s.namespaces {
		rank(&first, &second, n, n.used, n == own, size, n.free > 0)
	}
	if in = first.who; in == nil || in != own && first.used < own.used+size {
		return nil, nil, nil
	}
	var one, other ranking[*shelf]
	for _, shelf := range in.services {
		rank(&one, &other, shelf, shelf.used, shelf == ownShelf, size, shelf.recent.Len() > 0)
	}
	if on = one.who; on == nil || in == own && on != ownShelf && one.used < ownShelf.used+size {
		return nil, nil, nil
	}
	return in, on, func(in *namespace, on *shelf) bool { return in.used < second.used-slack || on.used < other.used-slack }
}

// ranking is who has how much.
type ranking[T any] struct {
	who  T
	used int64
}

// rank puts one of many in its place. Who asks for bytes counts as if he had them. Others count if they have what can go.
func rank[T any](first, second *ranking[T], who T, used int64, asks bool, size int64, hasFree bool) {
	if asks {
		used += size
	}
	switch {
	case !hasFree:
	case used > first.used:
		*second = *first
		*first = ranking[T]{who, used}
	case used > second.used:
		*second = ranking[T]{who, used}
	}
}

// held is what responses under way hold.
type held struct {
	bound      int
	namespaces clients.Shares[string]
	services   clients.Shares[string]
	clients    clients.Places
}

// mayHold reports whether bytes of a backend may be held for a client.
func (h *held) mayHold(b Backend, client netip.Addr, size int64) bool {
	n := int(size)
	return h.namespaces.RoomFor(b.namespaceName(), n, h.bound) && h.services.RoomFor(b.serviceName(), n, h.bound) && h.clients.RoomFor(client, n, h.bound)
}

func (h *held) add(b Backend, client netip.Addr, size int64) {
	n := int(size)
	h.namespaces.Add(b.namespaceName(), n)
	h.services.Add(b.serviceName(), n)
	h.clients.Add(client, n)
}

func (h *held) subtract(b Backend, client netip.Addr, size int64) {
	n := int(size)
	h.namespaces.Subtract(b.namespaceName(), n)
	h.services.Subtract(b.serviceName(), n)
	h.clients.Subtract(client, n)
}

// namespaceName and serviceName name owners. No name is empty, which would mean nobody.
func (b Backend) namespaceName() string { return b.Namespace + "/" }
func (b Backend) serviceName() string   { return b.Namespace + "/" + b.Service }

// lend counts a request that uses an entry, and may do so for long. It returns false if too much is held. It needs mu held.
func (s *Store) lend(e *entry, client netip.Addr) bool {
	if e.lent == 0 {
		if !s.held.mayHold(e.backend, client, e.whole()) {
			return false
		}
		s.held.add(e.backend, client, e.whole())
		e.lentTo = client
		s.unshelve(e)
	}
	e.lent++
	return true
}

// giveBack needs mu held.
func (s *Store) giveBack(e *entry) {
	if e.lent--; e.lent > 0 {
		return
	}
	s.held.subtract(e.backend, e.lentTo, e.whole())
	s.shelve(e)
	s.uncount(e)
}

// whole is what an entry takes with its body.
func (e *entry) whole() int64 { return e.size + int64(cap(e.body.bytes)) }
