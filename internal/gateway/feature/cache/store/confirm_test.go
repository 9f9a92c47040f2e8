package store

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// confirm asks for a page, and answers 304 to the conditions. It returns what the client gets.
func confirm(t *testing.T, s *Store, r *Request, fields ...string) *Found {
	t.Helper()
	l := s.Look(anHour, r)
	defer l.Close()
	if l.Result != Stale || len(l.Conditions()) == 0 {
		t.Fatalf("it is %v, and the backend is asked with %v", l.Result, l.Conditions())
	}
	return l.Confirm(fieldsOf(fields...))
}

func TestAResponseBecomesStaleAndIsConfirmed(t *testing.T) {
	s, clock := newStore(1 << 20)
	keep(s, get(), "one", "Cache-Control: max-age=60", `ETag: "a"`, "Age: 10", "X-A: before", "Content-Type: text/plain")
	clock.SetTime(start.Add(40 * time.Second))
	l := s.Look(anHour, get())
	if !slices.Contains(l.Found.Fields, upstream.Field{Name: "Age", Value: "50"}) || !slices.Contains(l.Found.Fields, upstream.Field{Name: "Cache-Status", Value: "slipway; hit; ttl=10"}) {
		t.Errorf("it does not say how old it is: %v", l.Found.Fields)
	}
	l.Close()
	for _, asked := range []string{"Cache-Control: max-age=49", "Cache-Control: min-fresh=10"} {
		if got := look(s, get(asked)); !strings.HasPrefix(got, "stale") {
			t.Errorf("%s: %s", asked, got)
		}
	}
	clock.SetTime(start.Add(50 * time.Second))
	l = s.Look(anHour, get(`If-None-Match: "b"`))
	if l.Result != Stale || l.Conditions() != nil {
		t.Errorf("the client's own condition: %v, and the backend is asked with %v", l.Result, l.Conditions())
	}
	l.Close()
	l = s.Look(anHour, get())
	if diff := cmp.Diff(fieldsOf(`If-None-Match: "a"`), l.Conditions()); diff != "" {
		t.Errorf("the backend is asked: -want +got:\n%s", diff)
	}
	l.Close()
	given := confirm(t, s, get(), "Cache-Control: max-age=100", `ETag: "a"`, "X-A: after", "Content-Length: 0", "Content-Type: text/html")
	if given == nil || string(given.Body) != "one" || given.Status != 200 {
		t.Fatalf("confirmed: %+v", given)
	}
	if kind, _, _ := one(given.Fields, "Content-Type"); kind != "text/plain" {
		t.Errorf("a 304 has changed the type of the body: %v", given.Fields)
	}
	if value, _, several := one(given.Fields, "X-A"); value != "after" || several {
		t.Errorf("a 304 has changed nothing: %v", given.Fields)
	}
	if says, _, _ := one(given.Fields, "Cache-Status"); says != "slipway; fwd=stale; fwd-status=304" {
		t.Errorf("it says %s", says)
	}
	clock.SetTime(start.Add(149 * time.Second))
	if got := look(s, get()); got != "hit one" {
		t.Errorf("after it was confirmed: %s", got)
	}
	clock.SetTime(start.Add(151 * time.Second))
	if given := confirm(t, s, get(), `ETag: "b"`); given != nil {
		t.Error("a 304 for another response counts")
	}
	if got := look(s, get()); got != "miss" {
		t.Errorf("after a 304 for another response: %s", got)
	}
	wantConsistent(t, s)
}

// What a 304 brings is counted as anything else, and pins no memory of the connection.
func TestWhatA304BringsIsCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		large int
		kept  bool
	}{"much": {10 << 10, true}, "too much": {maxFieldBytes, false}} {
		s, clock := newStore(1 << 20)
		keep(s, get(), "one", "Cache-Control: max-age=60", `ETag: "a"`)
		before := s.Use().Bytes
		clock.SetTime(start.Add(time.Hour))
		head := []byte(strings.Repeat("x", tc.large))
		l := s.Look(anHour, get())
		given := l.Confirm([]upstream.Field{{Name: "X-Large", Value: unsafe.String(&head[0], len(head))}, {Name: "Cache-Control", Value: "max-age=60"}})
		if given == nil || string(given.Body) != "one" {
			t.Fatalf("%s: %+v", name, given)
		}
		l.Close()
		if grown := s.Use().Bytes - before; tc.kept && grown < int64(tc.large) || !tc.kept && grown >= 0 {
			t.Errorf("%s: it takes %d bytes more", name, grown)
		}
		clear(head) // the connection reads the next head into it
		l = s.Look(anHour, get())
		if (l.Result == Hit) != tc.kept {
			t.Errorf("%s: %v", name, l.Result)
		}
		if tc.kept && !slices.Contains(l.Found.Fields, upstream.Field{Name: "X-Large", Value: strings.Repeat("x", tc.large)}) {
			t.Errorf("%s: what is kept belongs to the connection", name)
		}
		l.Close()
		wantConsistent(t, s)
	}
}

// What a 304 says counts from then on, also about who may get the response.
func TestA304SaysWhoMayGetTheResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		stored, confirms []string
		english, german  string
	}{
		"as before":             {english: "hit one", german: "hit one"},
		"Vary":                  {confirms: []string{"Vary: Accept-Language"}, english: "hit one", german: "miss"},
		"Vary no longer":        {stored: []string{"Vary: Accept-Language"}, confirms: []string{"Vary: Accept-Encoding"}, english: "hit one", german: "hit one"},
		"Vary of before":        {stored: []string{"Vary: Accept-Language"}, english: "hit one", german: "miss"},
		"nobody":                {confirms: []string{"Vary: *"}, english: "miss", german: "miss"},
		"not to be kept":        {confirms: []string{"Cache-Control: no-store"}, english: "miss", german: "miss"},
		"a cookie for somebody": {confirms: []string{"Set-Cookie: a=1"}, english: "miss", german: "miss"},
		"no end":                {confirms: []string{"Age: 1", "Age: 2"}, english: "miss", german: "miss"},
	} {
		s, clock := newStore(1 << 20)
		english, german := get("Accept-Language: en"), get("Accept-Language: de")
		keep(s, english, "one", append(tc.stored, "Cache-Control: max-age=60", `ETag: "a"`)...)
		clock.SetTime(start.Add(time.Minute))
		given := confirm(t, s, english, append([]string{`ETag: "a"`}, tc.confirms...)...)
		if given == nil || string(given.Body) != "one" {
			t.Fatalf("%s: %+v", name, given)
		}
		if got := look(s, english); got != tc.english {
			t.Errorf("%s: english: %s, want %s", name, got, tc.english)
		}
		if got := look(s, german); got != tc.german {
			t.Errorf("%s: german: %s, want %s", name, got, tc.german)
		}
		wantConsistent(t, s)
	}
}

// Who asks may say that nothing is to be kept for him. He does not decide about what others get.
func TestWhoMayNotStoreChangesNothing(t *testing.T) {
	for name, asks := range map[string]func() *Request{
		"no-store":     func() *Request { return get("Cache-Control: no-store") },
		"broken words": func() *Request { return get(`Cache-Control: "`) },
		"somebody":     func() *Request { r := get(); r.Proven = true; return r },
	} {
		s, clock := newStore(1 << 20)
		keep(s, get(), "one", "Cache-Control: max-age=60", `ETag: "a"`)
		clock.SetTime(start.Add(30 * time.Second))
		r := asks()
		short := &Policy{MaxAge: time.Second, MaxBytes: 100}
		l := s.Look(short, r)
		given := l.Confirm(fieldsOf(`ETag: "a"`, "Cache-Control: max-age=60"))
		if given == nil || string(given.Body) != "one" {
			t.Errorf("%s: %+v", name, given)
		}
		l.Close()
		if got := look(s, get()); got != "hit one" {
			t.Errorf("%s: then others get %s", name, got)
		}
		clock.SetTime(start.Add(61 * time.Second))
		if got := look(s, get()); got != "stale" {
			t.Errorf("%s: what he was told is stored: %s", name, got)
		}
	}
}

// A route with a short bound does not shorten what others have.
func TestABoundOfARouteIsItsOwn(t *testing.T) {
	short := &Policy{MaxAge: 10 * time.Second, MaxBytes: 100}
	s, clock := newStore(1 << 20)
	keepWith(s, short, get(), 200, "one", "Cache-Control: max-age=60", `ETag: "a"`)
	l := s.Look(short, get())
	if says, _, _ := one(l.Found.Fields, "Cache-Status"); says != "slipway; hit; ttl=10" {
		t.Errorf("the route with the bound says %s", says)
	}
	l.Close()
	for _, at := range []time.Duration{20 * time.Second, 70 * time.Second} {
		clock.SetTime(start.Add(at))
		l = s.Look(short, get())
		if l.Result != Stale {
			t.Errorf("after %v the route with the bound says %v", at, l.Result)
		}
		if at > time.Minute {
			l.Confirm(fieldsOf(`ETag: "a"`))
		}
		l.Close()
		if got := look(s, get()); got != "hit one" {
			t.Errorf("after %v others get %s", at, got)
		}
		clock.SetTime(clock.Now().Add(30 * time.Second))
		if got := look(s, get()); got != "hit one" {
			t.Errorf("30 s after that others get %s", got)
		}
	}
}

// A 304 is about what is stored, or the backend is asked again.
func TestWhatA304IsAbout(t *testing.T) {
	const date, later = "Last-Modified: Fri, 27 Nov 2026 11:00:00 GMT", "Last-Modified: Fri, 27 Nov 2026 11:30:00 GMT"
	for name, tc := range map[string]struct {
		stored, confirms []string
		want             bool
	}{
		"the same tag":           {[]string{`ETag: "a"`}, []string{`ETag: "a"`}, true},
		"nothing said":           {[]string{`ETag: "a"`}, nil, true},
		"another tag":            {[]string{`ETag: "a"`}, []string{`ETag: "b"`}, false},
		"two tags":               {[]string{`ETag: "a"`}, []string{`ETag: "a"`, `ETag: "b"`}, false},
		"a tag now":              {[]string{date}, []string{`ETag: "a"`}, false},
		"the same time":          {[]string{date}, []string{date}, true},
		"another time":           {[]string{date}, []string{later}, false},
		"another time, same tag": {[]string{`ETag: "a"`, date}, []string{`ETag: "a"`, later}, true},
		"a time, no tag":         {[]string{`ETag: "a"`, date}, []string{later}, false},
	} {
		s, clock := newStore(1 << 20)
		keep(s, get(), "one", append(tc.stored, "Cache-Control: max-age=60")...)
		clock.SetTime(start.Add(time.Hour))
		if given := confirm(t, s, get(), tc.confirms...); (given != nil) != tc.want {
			t.Errorf("%s: %+v", name, given)
		}
	}
}

// A 304 without Date is of now: an old Date would make its Expires last too long, and the response too old.
func TestA304WithoutDateIsOfNow(t *testing.T) {
	s, clock := newStore(1 << 20)
	keep(s, get(), "one", "Date: "+startText, "Expires: Fri, 27 Nov 2026 12:00:30 GMT", `ETag: "a"`)
	clock.SetTime(start.Add(time.Minute))
	given := confirm(t, s, get(), "Expires: Fri, 27 Nov 2026 12:01:30 GMT")
	if date, _, several := one(given.Fields, "Date"); date != "Fri, 27 Nov 2026 12:01:00 GMT" || several {
		t.Errorf("it is of %s", date)
	}
	for at, want := range map[time.Duration]string{89 * time.Second: "hit one", 91 * time.Second: "stale"} {
		clock.SetTime(start.Add(at))
		if got := look(s, get()); got != want {
			t.Errorf("after %v: %s, want %s", at, got, want)
		}
	}
}

// A 304 that comes after a change is about what was before.
func TestAChangeWhileABackendIsAskedToConfirm(t *testing.T) {
	s, clock := newStore(1 << 20)
	keep(s, get(), "one", "Cache-Control: max-age=60", `ETag: "a"`)
	clock.SetTime(start.Add(time.Hour))
	l := s.Look(anHour, get())
	change(s, get())
	if given := l.Confirm(fieldsOf(`ETag: "a"`)); given == nil || string(given.Body) != "one" {
		t.Errorf("it is given once more, because it was asked for before: %+v", given)
	}
	l.Close()
	if got := look(s, get()); got != "miss" {
		t.Errorf("then: %s", got)
	}
	wantConsistent(t, s)
}
