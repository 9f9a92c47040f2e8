package store

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/utils/clock"
)

const (
	// maxRoom is how many bytes a Store keeps at most, with what it needs for itself. Of a container's memory it takes no more than
	// one part in roomShare.
	maxRoom   = 64 << 20
	roomShare = 4
	// maxVariants bounds the responses of a page. The one that was not used for the longest time goes first.
	maxVariants = 64
)

// Store keeps responses. The zero value is not usable: see New.
type Store struct {
	clock clock.PassiveClock
	room  int64

	mu    sync.Mutex
	pages map[pageKey]*page
	// backends are those whose responses are kept. Nil: all.
	backends map[Backend]bool
	// used is what all entries take, and what recordings have taken.
	used       int64
	namespaces map[string]*namespace
	held       held
	ticks      uint64 // orders uses
	responses  int
	evicted    uint64
}

// page has what is kept of a page, the newest last, and knows when it has changed. It is there while anything is kept or somebody
// looks at it.
type page struct {
	key     pageKey
	entries []*entry
	lookups int
	// changes grows with each request that may have changed the page. What was asked for before is not kept then.
	changes uint64
}

// RoomWithin returns the room of a Store in a container with so much memory. 0: it has no limit.
func RoomWithin(memory int64) int64 {
	if memory <= 0 {
		return maxRoom
	}
	return min(maxRoom, memory/roomShare)
}

// New returns an empty Store. room is in bytes.
func New(room int64, clock clock.PassiveClock) *Store {
	return &Store{clock: clock, room: room, pages: map[pageKey]*page{}, namespaces: map[string]*namespace{}, held: held{bound: int(room / 2)}}
}

// open returns a page for a lookup. It needs mu held.
func (s *Store) open(key pageKey) *page {
	p := s.pages[key]
	if p == nil {
		p = &page{key: key}
		s.pages[key] = p
	}
	p.lookups++
	return p
}

// leave needs mu held.
func (s *Store) leave(p *page) {
	p.lookups--
	s.tidy(p)
}

// mayAdd reports whether what a lookup has brought may be kept: nothing has changed the page meanwhile, and the table still leads to
// the backend. It needs mu held.
func (s *Store) mayAdd(l *Lookup) bool {
	return !l.closed && l.page.changes == l.changes && (s.backends == nil || s.backends[l.request.Backend])
}

// tidy forgets a page of which there is nothing. It needs mu held.
func (s *Store) tidy(p *page) {
	if p.lookups == 0 && len(p.entries) == 0 && s.pages[p.key] == p {
		delete(s.pages, p.key)
	}
}

// find returns the newest entry for a request, if there is one (RFC 9111, 4.1). It needs Store.mu held.
func (p *page) find(q *question) *entry {
	for _, e := range slices.Backward(p.entries) {
		if e.answers(q) {
			return e
		}
	}
	return nil
}

// answers reports whether an entry is a response to a request.
func (e *entry) answers(q *question) bool { return e.of == q.fields && e.vary.matches(q) }

// add keeps an entry, in place of all that its request would find otherwise. What it takes must be counted. It needs mu held.
func (s *Store) add(e *entry, q *question) {
	s.removeAll(e.page, q)
	for len(e.page.entries) >= maxVariants {
		s.remove(slices.MinFunc(e.page.entries, func(a, b *entry) int { return cmp.Compare(a.used, b.used) }))
		s.evicted++
	}
	e.kept = true
	s.responses++
	s.touch(e)
	e.page.entries = append(e.page.entries, e)
	s.shelve(e)
}

// touch notes that an entry is used. It needs mu held.
func (s *Store) touch(e *entry) {
	s.ticks++
	e.used = s.ticks
}

// removeAll removes all that a request could find on a page. It needs mu held.
func (s *Store) removeAll(p *page, q *question) {
	for _, e := range slices.Clone(p.entries) {
		if e.answers(q) {
			s.remove(e)
		}
	}
}

// remove needs mu held. Who has been lent the entry keeps it, and it stays counted.
func (s *Store) remove(e *entry) {
	if !e.kept {
		return
	}
	e.kept = false
	s.responses--
	s.unshelve(e)
	p := e.page
	i := slices.Index(p.entries, e)
	p.entries = slices.Delete(p.entries, i, i+1)
	s.tidy(p)
	s.uncount(e)
}

// Changed forgets what there is of a page, whatever the way to its Service, after a request that may have changed it (RFC 9111, 4.4).
func (s *Store) Changed(backend Backend, host, target string) {
	key := keyOf(backend, host, target)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[key]
	if p == nil {
		return
	}
	p.changes++
	for len(p.entries) > 0 {
		s.remove(p.entries[0])
	}
}

// SetBackends forgets what there is of all other backends, and keeps nothing more of them.
func (s *Store) SetBackends(backends map[Backend]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backends != nil && maps.Equal(s.backends, backends) {
		return
	}
	s.backends = backends
	for _, p := range s.pages {
		for _, e := range slices.Clone(p.entries) {
			if !backends[e.backend] {
				s.remove(e)
			}
		}
	}
}

// Use is what a Store keeps.
type Use struct {
	// Bytes are those of responses that are kept, come or are being given.
	Bytes int64
	// Held are those of Bytes that come or are being given.
	Held      int64
	Responses int
	Evicted   uint64
}

// Use returns what there is now.
func (s *Store) Use() Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Use{Bytes: s.used, Held: int64(s.held.clients.Taken()), Responses: s.responses, Evicted: s.evicted}
}
