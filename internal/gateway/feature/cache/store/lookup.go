package store

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

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
	// Stale: there is a response, and the backend is asked for a newer one. It may confirm the old one.
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

// Lookup is what a Store knows of a request, until it is closed.
type Lookup struct {
	// Result is what came of it.
	Result Result
	// Found is what the client gets, with Hit.
	Found *Found

	store    *Store
	policy   *Policy
	request  *Request
	question question
	wants    wants
	asked    time.Time // when the backend is asked

	page    *page // nil: the cache has nothing to do with the request
	changes uint64
	records bool // what the backend answers may be kept
	// lent is the entry that is given or confirmed.
	lent    *entry
	forward string // why the backend is asked (RFC 9211, 2.2)
	closed  bool
}

// Found is a response to give.
type Found struct {
	// Status, Fields and Body are what the client gets: of a 304 no body. They must not be changed.
	Status int
	Fields []upstream.Field
	Body   []byte
}

// Look looks for the response to a request. With Hit there is one to give, and with Stale there may be one to confirm. It must be closed when the
// client has got its answer.
func (s *Store) Look(p *Policy, r *Request) *Lookup {
	l := &Lookup{Result: Bypass, store: s, policy: p, request: r, asked: s.clock.Now(), forward: "bypass"}
	if !reads(r) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			l.forward = "method"
		}
		return l
	}
	l.wants = wantsOf(r)
	if passes(r) {
		if l.wants.only {
			l.Result = Absent
		}
		return l
	}
	l.question = newQuestion(r)
	l.records = l.wants.copies && !hasConditions(r)
	e := l.find()
	if l.Result == Hit {
		l.Found = l.give(e, l.asked, "hit; ttl="+seconds(min(e.lasts, p.MaxAge)-e.ageAt(l.asked)))
	}
	if l.wants.only && l.Result != Hit {
		l.Result = Absent
	}
	return l
}

// find finds the entry for the request, and decides about it.
func (l *Lookup) find() *entry {
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	l.page = s.open(l.question.page)
	l.changes = l.page.changes
	e := l.page.find(&l.question)
	l.Result, l.forward = Miss, "miss"
	if e == nil || int64(len(e.body.bytes)) > l.policy.MaxBytes {
		return nil
	}
	s.touch(e)
	result, forward := Hit, ""
	switch {
	case !e.isFresh(l.policy, &l.wants, l.asked):
		result, forward = Stale, "stale"
	case l.wants.fresh:
		result, forward = Stale, "request"
	}
	if result == Stale && (hasConditions(l.request) || !e.confirmable()) {
		l.Result, l.forward = result, forward
		return nil
	}
	if !s.lend(e, l.request.Client) {
		l.records = false // whoever holds so much shall not bring more
		return nil
	}
	l.Result, l.forward, l.lent = result, forward, e
	return e
}

// give makes what the client gets of an entry. says is what Cache-Status says.
func (l *Lookup) give(e *entry, now time.Time, says string) *Found {
	found := &Found{Status: e.status, Body: e.body.bytes}
	found.Fields = append(slices.Clone(e.fields),
		upstream.Field{Name: "Age", Value: seconds(e.ageAt(now))},
		upstream.Field{Name: "Cache-Status", Value: "slipway; " + says},
	)
	if unmodified(l.request, e.status, e.fields) {
		found.Status, found.Body = http.StatusNotModified, nil
		found.Fields = slices.DeleteFunc(found.Fields, func(field upstream.Field) bool { return !slices.Contains(of304, strings.ToLower(field.Name)) })
	}
	return found
}

// CacheStatus says why the backend was asked (RFC 9211).
func (l *Lookup) CacheStatus() string { return "slipway; fwd=" + l.forward }

// Conditions are the fields that ask the backend whether a response is still right, with Stale. There may be none.
func (l *Lookup) Conditions() []upstream.Field {
	if l.Result != Stale || l.lent == nil {
		return nil
	}
	return l.lent.conditions()
}

// Confirm takes the answer 304 to Conditions. It returns what the client gets, or nil if the answer is about another response: then
// the backend has to be asked again, without conditions. Nothing of the fields is kept.
func (l *Lookup) Confirm(fields []upstream.Field) *Found {
	before, now := l.lent, l.store.clock.Now()
	if !isAbout(fields, before.fields) {
		l.store.mu.Lock()
		l.store.remove(before)
		l.store.mu.Unlock()
		l.asked = now
		return nil
	}
	merged := refreshed(before.fields, fields, now)
	v, varies := varyOf(&l.question, merged)
	next, small := newEntry(merged, v, before.body)
	next.backend, next.page, next.of, next.status = before.backend, before.page, before.of, before.status
	age, ok := ageOf(fields, l.asked, now)
	next.lasts, next.age, next.came = freshness(next.status, merged, now), age, now
	if l.records && !isForSomebody(l.request, merged) {
		l.replace(before, next, varies && small && ok && next.lasts > next.age)
	}
	return l.give(next, now, "fwd="+l.forward+"; fwd-status=304")
}

// replace puts a response that was confirmed in the place of what it was before, if it may be kept. If there is no room for it now,
// what was there before stays.
func (l *Lookup) replace(before, next *entry, keep bool) {
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if !before.kept || !s.mayAdd(l) {
		return
	}
	if !keep {
		s.remove(before)
		return
	}
	if s.makeRoom(next.backend, next.size) {
		s.countEntry(next)
		s.remove(before)
		s.add(next, &l.question)
	}
}

// isAbout reports whether a 304 is about a stored response (RFC 9111, 4.3.4).
func isAbout(fields, stored []upstream.Field) bool {
	for _, name := range []string{"ETag", "Last-Modified"} {
		says, found, several := one(fields, name)
		if !found {
			continue
		}
		was, had, _ := one(stored, name)
		return !several && had && was == says
	}
	return true
}

// refreshed are the fields of a response after the backend has confirmed it (RFC 9111, 3.2).
func refreshed(before, news []upstream.Field, now time.Time) []upstream.Field {
	ofBody := func(name string) bool {
		return strings.HasPrefix(strings.ToLower(name), "content-") && !strings.EqualFold(name, "Content-Location")
	}
	out := slices.Clone(before)
	out = slices.DeleteFunc(out, func(field upstream.Field) bool {
		return strings.EqualFold(field.Name, "Date") || !ofBody(field.Name) && has(news, field.Name)
	})
	for _, field := range news {
		if !ofBody(field.Name) {
			out = append(out, field)
		}
	}
	if !has(news, "Date") {
		out = append(out, upstream.Field{Name: "Date", Value: now.UTC().Format(http.TimeFormat)})
	}
	return out
}

// forget removes what the request would find.
func (l *Lookup) forget() {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.store.removeAll(l.page, &l.question)
}

// Close ends the lookup. What was found must not be used any more.
func (l *Lookup) Close() {
	if l == nil || l.page == nil || l.closed {
		return
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.closed = true
	if l.lent != nil {
		l.store.giveBack(l.lent)
	}
	l.store.leave(l.page)
}
