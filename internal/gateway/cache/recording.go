package cache

import (
	"strconv"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// firstPiece is how much room is taken first for a body of unknown length. Then it doubles.
const firstPiece = 16 << 10

// Recording keeps a response while it comes. Nil: it is not kept. It must be ended by Keep or Drop.
type Recording struct {
	store *Store
	epoch uint64
	entry *entry
	most  int64
	taken int64
}

// Record begins to keep a response, if it may be kept. asked is when the request was sent. It returns nil if it may not, or if there
// is no room.
func (s *Store) Record(p *Policy, r *Request, since uint64, status int, fields []upstream.Field, length int64, asked time.Time) *Recording {
	if !asks(r) || r.Method != "GET" || has(r.Fields, "If-None-Match") || has(r.Fields, "If-Modified-Since") || length > p.MaxBytes {
		return nil
	}
	now := s.clock.Now()
	fresh := freshness(p, r, status, fields, now)
	age, ok := ageOf(fields, asked, now)
	if !ok || fresh <= age {
		return nil
	}
	vary, ok := variantOf(r, fields)
	if !ok {
		return nil
	}
	e := &entry{service: r.Service, at: placeOf(r), of: groupOf(r), vary: vary, status: status, fresh: fresh, age: age, came: now, size: overhead}
	for _, field := range fields {
		if strings.EqualFold(field.Name, "Age") {
			continue
		}
		e.fields = append(e.fields, upstream.Field{Name: strings.Clone(field.Name), Value: strings.Clone(field.Value)})
		e.size += int64(len(field.Name) + len(field.Value))
	}
	for _, field := range vary {
		e.size += int64(len(field.Name) + len(field.Value))
	}
	recording := &Recording{store: s, entry: e, most: p.MaxBytes, epoch: since}
	if !recording.take(e.size) {
		return nil
	}
	if length > 0 {
		if !recording.take(length) {
			recording.Drop()
			return nil
		}
		e.body = make([]byte, 0, length)
	}
	return recording
}

// Since is what Record needs of the time before the request was sent: what has changed afterwards is not kept.
func (s *Store) Since(r *Request) uint64 {
	at := placeOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed[at[0]]
}

// take takes room. What is coming takes at most half of it, so that it cannot push out everything.
func (r *Recording) take(size int64) bool {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.coming+size > s.room/2 {
		return false
	}
	s.coming += size
	r.taken += size
	for s.used+s.coming > s.room && s.evict() { //nolint:revive // evict does it
	}
	return true
}

// Add adds a piece of the body. It returns nil once the response is not kept any more.
func (r *Recording) Add(piece []byte) *Recording {
	if r == nil {
		return nil
	}
	need := int64(len(r.entry.body) + len(piece))
	if need > r.most {
		r.Drop()
		return nil
	}
	if need > int64(cap(r.entry.body)) {
		grown := max(need, int64(2*cap(r.entry.body)), firstPiece)
		if !r.take(grown - int64(cap(r.entry.body))) {
			r.Drop()
			return nil
		}
		r.entry.body = append(make([]byte, 0, grown), r.entry.body...)
	}
	r.entry.body = append(r.entry.body, piece...)
	return r
}

// Keep keeps the response, which is complete.
func (r *Recording) Keep() {
	if r == nil {
		return
	}
	if len(r.entry.body) < cap(r.entry.body) {
		r.entry.body = append(make([]byte, 0, len(r.entry.body)), r.entry.body...) // with no more room than it needs
	}
	r.entry.size += int64(len(r.entry.body))
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming -= r.taken
	if s.changed[r.entry.at[0]] == r.epoch {
		s.add(r.entry)
	}
}

// Drop forgets the response.
func (r *Recording) Drop() {
	if r == nil {
		return
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.store.coming -= r.taken
	r.taken = 0
}

// seconds writes a time as whole seconds.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(max(0, d)/time.Second), 10) }
