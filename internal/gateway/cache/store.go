package cache

import (
	"container/list"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

const (
	// DefaultRoom is how many bytes a Store keeps at most, with what it needs for itself.
	DefaultRoom = 64 << 20
	// overhead is about what a response takes beside its body and its fields.
	overhead = 1 << 10
	// maxVariants bounds the responses of one place. The one that was not used for the longest time goes first.
	maxVariants = 64
	// epochs is how many groups of places know when something in them has changed. Two places that share one cost at worst that a
	// response is not kept.
	epochs = 256
)

// Store keeps responses. The zero value is not usable: see New.
type Store struct {
	clock clock.PassiveClock
	room  int64

	mu     sync.Mutex
	used   int64
	coming int64 // what recordings have taken
	places map[place][]*entry
	// shelves are what Services have, by Request.Service. When room is needed, the Service with the most loses the response that
	// was not used for the longest time. So nobody can push out what others have by asking for much of his own.
	shelves map[string]*shelf
	changed [epochs]uint64
	evicted uint64
}

// shelf is what a Service has.
type shelf struct {
	used   int64
	recent *list.List // of *entry, the one that was used last in front
}

// entry is a response. Only its place on the shelf changes after it is kept.
type entry struct {
	service string
	at      place
	of      group
	vary    variant
	place   *list.Element
	size    int64

	status int
	fields []upstream.Field
	body   []byte
	// fresh is how long it may be given, age how old it was when it came, and came when that was.
	fresh, age time.Duration
	came       time.Time
}

// New returns an empty Store. room is in bytes.
func New(room int64, clock clock.PassiveClock) *Store {
	return &Store{clock: clock, room: room, places: map[place][]*entry{}, shelves: map[string]*shelf{}}
}

// Result is what the cache says of a request.
type Result int

// The results, as the metric and the access log have them.
const (
	// Bypass: the request goes to the backend, and what it answers is not kept.
	Bypass Result = iota
	// Miss: there is no response for it.
	Miss
	// Hit: there is a response that is fresh.
	Hit
	// Stale: there is a response that the backend may confirm.
	Stale
	// Absent: there is none, and the client wants no other.
	Absent
	// Results is how many there are.
	Results
)

// String returns the result as a label value.
func (r Result) String() string {
	return [Results]string{"bypass", "miss", "hit", "stale", "absent"}[r]
}

// Found is a response that was found.
type Found struct {
	// Status, Fields and Body are what the client gets: of a 304 no body. They must not be changed.
	Status int
	Fields []upstream.Field
	Body   []byte

	entry *entry
}

// Find looks for the response to a request. With Hit there is one to give, and with Stale one to confirm.
func (s *Store) Find(p *Policy, r *Request) (Result, *Found) {
	if !asks(r) {
		return Bypass, nil
	}
	w := wantsOf(r)
	found := s.find(placeOf(r), groupOf(r), r)
	switch {
	case found == nil || w.fresh && !found.confirmable():
		if w.only {
			return Absent, nil
		}
		return Miss, nil
	case w.fresh || !found.isFresh(p, w, s.clock.Now()):
		if w.only {
			return Absent, nil
		}
		if found.confirmable() && !has(r.Fields, "If-None-Match") && !has(r.Fields, "If-Modified-Since") {
			return Stale, &Found{entry: found}
		}
		return Miss, nil
	}
	return Hit, s.give(found, r)
}

// find returns an entry and notes that it is used.
func (s *Store) find(at place, of group, r *Request) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.places[at] {
		if e.of == of && e.vary.matches(r) {
			s.shelves[e.service].recent.MoveToFront(e.place)
			return e
		}
	}
	return nil
}

// give makes what the client gets of an entry.
func (s *Store) give(e *entry, r *Request) *Found {
	found := &Found{Status: e.status, Body: e.body, entry: e}
	left := e.fresh - e.ageAt(s.clock.Now())
	found.Fields = append(slices.Clone(e.fields),
		upstream.Field{Name: "Age", Value: seconds(e.ageAt(s.clock.Now()))},
		upstream.Field{Name: "Cache-Status", Value: "slipway; hit; ttl=" + seconds(left)},
	)
	if unmodified(r, e.status, e.fields) {
		found.Status, found.Body = http.StatusNotModified, nil
		found.Fields = slices.DeleteFunc(found.Fields, func(field upstream.Field) bool { return !slices.Contains(of304, strings.ToLower(field.Name)) })
	}
	return found
}

// ageAt is how old an entry is (RFC 9111, 4.2.3).
func (e *entry) ageAt(now time.Time) time.Duration { return e.age + now.Sub(e.came) }

// isFresh reports whether an entry may be given without asking the backend.
func (e *entry) isFresh(p *Policy, w wants, now time.Time) bool {
	age := e.ageAt(now)
	return age+w.minLeft < min(e.fresh, p.MaxAge) && (w.maxAge < 0 || age <= w.maxAge) && int64(len(e.body)) <= p.MaxBytes
}

// confirmable reports whether the backend can say that an entry is still right.
func (e *entry) confirmable() bool {
	return e.status == http.StatusOK && (has(e.fields, "ETag") || has(e.fields, "Last-Modified"))
}

// Conditions are the fields that ask the backend whether a response that is stale is still right.
func (f *Found) Conditions() []upstream.Field {
	var fields []upstream.Field
	if tag, found, several := one(f.entry.fields, "ETag"); found && !several {
		fields = append(fields, upstream.Field{Name: "If-None-Match", Value: tag})
	}
	if changed, found, several := one(f.entry.fields, "Last-Modified"); found && !several {
		fields = append(fields, upstream.Field{Name: "If-Modified-Since", Value: changed})
	}
	return fields
}

// Confirm takes the answer 304 to Conditions. It returns what the client gets, or nil if the answer is about another response: then
// the backend has to be asked again, without conditions.
func (s *Store) Confirm(p *Policy, r *Request, f *Found, fields []upstream.Field, asked time.Time) *Found {
	before := f.entry
	tag, found, several := one(fields, "ETag")
	if was, had, _ := one(before.fields, "ETag"); several || found && (!had || was != tag) {
		s.mu.Lock()
		s.remove(before)
		s.mu.Unlock()
		return nil
	}
	next := *before
	next.fields = refreshed(before.fields, fields)
	now := s.clock.Now()
	age, ok := ageOf(fields, asked, now)
	next.fresh, next.age, next.came = freshness(p, r, next.status, next.fields, now), age, now
	s.mu.Lock()
	if s.isKept(before) {
		s.remove(before)
		if ok && next.fresh > next.age {
			s.add(&next)
		}
	}
	s.mu.Unlock()
	return s.give(&next, r)
}

// refreshed are the fields of a response after the backend has confirmed it (RFC 9111, 3.2).
func refreshed(before, news []upstream.Field) []upstream.Field {
	ofBody := func(name string) bool {
		return strings.HasPrefix(strings.ToLower(name), "content-") && !strings.EqualFold(name, "Content-Location")
	}
	out := slices.Clone(before)
	out = slices.DeleteFunc(out, func(field upstream.Field) bool { return !ofBody(field.Name) && has(news, field.Name) })
	for _, field := range news {
		if !ofBody(field.Name) && !strings.EqualFold(field.Name, "Age") {
			out = append(out, field)
		}
	}
	return out
}

// Changed forgets what there is of a request's target, after a request that may have changed it (RFC 9111, 4.4).
func (s *Store) Changed(r *Request) {
	if !changes(r.Method) {
		return
	}
	at := placeOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[at[0]]++
	for _, e := range slices.Clone(s.places[at]) {
		s.remove(e)
	}
}

// isKept needs mu held.
func (s *Store) isKept(e *entry) bool { return slices.Contains(s.places[e.at], e) }

// add needs mu held, and room taken. It replaces what the same request would find.
func (s *Store) add(e *entry) {
	all := s.places[e.at]
	for _, other := range slices.Clone(all) {
		if other.of == e.of && slices.Equal(other.vary, e.vary) {
			s.remove(other)
		}
	}
	for len(s.places[e.at]) >= maxVariants {
		s.remove(s.places[e.at][0])
	}
	s.used += e.size
	on := s.shelfOf(e.service)
	on.used += e.size
	e.place = on.recent.PushFront(e)
	s.places[e.at] = append(s.places[e.at], e)
	for s.used+s.coming > s.room && s.evict() { //nolint:revive // evict does it
	}
}

// shelfOf needs mu held.
func (s *Store) shelfOf(service string) *shelf {
	on := s.shelves[service]
	if on == nil {
		on = &shelf{recent: list.New()}
		s.shelves[service] = on
	}
	return on
}

// remove needs mu held.
func (s *Store) remove(e *entry) {
	all := s.places[e.at]
	i := slices.Index(all, e)
	if i < 0 {
		return
	}
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(s.places, e.at)
	} else {
		s.places[e.at] = all
	}
	on := s.shelves[e.service]
	on.recent.Remove(e.place)
	s.release(e.service, e.size)
}

// release needs mu held. It gives room back.
func (s *Store) release(service string, size int64) {
	s.used -= size
	on := s.shelves[service]
	if on.used -= size; on.used == 0 && on.recent.Len() == 0 {
		delete(s.shelves, service)
	}
}

// evict needs mu held. It removes the response that was not used for the longest time, of the Service with the most. It returns
// false if there is none.
func (s *Store) evict() bool {
	var most *shelf
	for _, on := range s.shelves {
		if on.recent.Len() > 0 && (most == nil || on.used > most.used) {
			most = on
		}
	}
	if most == nil {
		return false
	}
	s.remove(most.recent.Back().Value.(*entry))
	s.evicted++
	return true
}

// Use is what a Store keeps.
type Use struct {
	Bytes     int64
	Responses int
	Evicted   uint64
}

// Use returns what there is now.
func (s *Store) Use() Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := Use{Bytes: s.used, Evicted: s.evicted}
	for _, all := range s.places {
		use.Responses += len(all)
	}
	return use
}
