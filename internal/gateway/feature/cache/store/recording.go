package store

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// firstPiece is how much room is taken first for a body. Then it doubles. So what is only declared costs nothing.
const firstPiece = 16 << 10

// Recording keeps a response while it comes. Nil: it is not kept. It must be ended by Keep or Drop, before its lookup is closed.
type Recording struct {
	lookup *Lookup
	entry  *entry
	body   []byte
	most   int64
	taken  int64
}

// Record begins to keep the response to a request, if it may be kept. It returns nil if it may not, or if there is no room. length is
// that of the body, or -1 if it is not known. What a new response shows to be over is forgotten.
func (l *Lookup) Record(status int, fields []upstream.Field, length int64) *Recording {
	if !l.records || l.request.Method != http.MethodGet || isForSomebody(l.request, fields) {
		return nil
	}
	now := l.store.clock.Now()
	lasts := freshness(status, fields, now)
	age, ok := ageOf(fields, l.asked, now)
	v, varies := varyOf(&l.question, fields)
	if !ok || !varies || lasts <= age {
		if status == http.StatusOK {
			l.forget()
		}
		return nil
	}
	most := l.policy.MaxBytes
	if length >= 0 {
		most = min(most, length)
	}
	if length > most || min(lasts, l.policy.MaxAge) <= age {
		return nil
	}
	e, ok := newEntry(fields, v, &body{})
	if !ok {
		return nil
	}
	e.backend, e.page, e.of, e.status = l.request.Backend, l.page, l.question.fields, status
	e.lasts, e.age, e.came = lasts, age, now
	r := &Recording{lookup: l, entry: e, most: most}
	if !r.take(e.size) {
		return nil
	}
	return r
}

// take takes room.
func (r *Recording) take(size int64) bool {
	s, b, client := r.lookup.store, r.entry.backend, r.lookup.request.Client
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held.mayHold(b, client, size) || !s.makeRoom(b, size) {
		return false
	}
	s.held.add(b, client, size)
	s.count(b, size)
	r.taken += size
	return true
}

// leave gives the room back. It needs Store.mu held.
func (r *Recording) leave() {
	s, b := r.lookup.store, r.entry.backend
	s.held.subtract(b, r.lookup.request.Client, r.taken)
	s.count(b, -r.taken)
	r.taken = 0
}

// Add adds a piece of the body. It returns nil once the response is not kept any more.
func (r *Recording) Add(piece []byte) *Recording {
	if r == nil {
		return nil
	}
	had := int64(cap(r.body))
	need := int64(len(r.body) + len(piece))
	if need > had {
		grown := min(max(need, 2*had, firstPiece), r.most)
		if grown < need || !r.take(grown-had) {
			r.Drop()
			return nil
		}
		r.body = append(make([]byte, 0, grown), r.body...)
	}
	r.body = append(r.body, piece...)
	return r
}

// Keep keeps the response, which is complete.
func (r *Recording) Keep() {
	if r == nil {
		return
	}
	if len(r.body) < cap(r.body) {
		r.body = append(make([]byte, 0, len(r.body)), r.body...) // with no more room than it needs
	}
	r.entry.body.bytes = r.body
	s := r.lookup.store
	s.mu.Lock()
	defer s.mu.Unlock()
	r.leave()
	if s.mayAdd(r.lookup) {
		s.countEntry(r.entry) // it is less than was taken
		s.add(r.entry, &r.lookup.question)
	}
}

// Drop forgets the response.
func (r *Recording) Drop() {
	if r == nil {
		return
	}
	r.lookup.store.mu.Lock()
	defer r.lookup.store.mu.Unlock()
	r.leave()
}
