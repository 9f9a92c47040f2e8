package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

var anHour = &Policy{MaxAge: time.Hour, MaxBytes: 1 << 20}

// newStore is a Store whose time passes when it is told to.
func newStore(room int64) (*Store, *clocktesting.FakePassiveClock) {
	clock := clocktesting.NewFakePassiveClock(start)
	return New(room, clock), clock
}

// keep keeps a response, and reports whether it is kept.
func keep(s *Store, r *Request, body string, fields ...string) bool {
	recording := s.Record(anHour, r, s.Since(r), 200, fieldsOf(fields...), int64(len(body)), s.clock.Now())
	recording = recording.Add([]byte(body))
	recording.Keep()
	return recording != nil
}

// look returns what a request finds: the result, and the body.
func look(s *Store, r *Request) string {
	result, found := s.Find(anHour, r)
	if found == nil {
		return result.String()
	}
	return result.String() + " " + string(found.Body)
}

// A response is for requests that would have got the same. Whatever a client says in a field that the backend may look at keeps its
// response from all who say something else.
func TestWhoGetsAResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		one      []string
		response []string
		other    []string
		change   func(r *Request)
		want     string
	}{
		"the same":                       {want: "hit one"},
		"another browser":                {one: []string{"User-Agent: a", "Sec-Ch-Ua: a", "Accept: a"}, other: []string{"User-Agent: b"}, want: "hit one"},
		"another order":                  {one: []string{"X-A: 1", "X-B: 2"}, other: []string{"X-B: 2", "X-A: 1"}, want: "hit one"},
		"another cookie":                 {one: []string{"Cookie: a=1"}, other: []string{"Cookie: a=2"}, want: "miss"},
		"no cookie":                      {one: []string{"Cookie: a=1"}, want: "miss"},
		"a cookie now":                   {other: []string{"Cookie: a=1"}, want: "miss"},
		"in another spelling":            {one: []string{"COOKIE: a=1"}, other: []string{"cookie: a=1"}, want: "hit one"},
		"the address by another name":    {one: []string{"X-Original-Url: /admin"}, want: "miss"},
		"another host by a proxy":        {one: []string{"X-Forwarded-Host: evil.example"}, want: "miss"},
		"over TLS":                       {one: []string{"X-Forwarded-Proto: http"}, other: []string{"X-Forwarded-Proto: https"}, want: "miss"},
		"another method in a header":     {one: []string{"X-Http-Method-Override: HEAD"}, want: "miss"},
		"somebody else":                  {one: []string{"X-User: alice"}, other: []string{"X-User: bob"}, want: "miss"},
		"another origin":                 {one: []string{"Origin: https://a"}, other: []string{"Origin: https://b"}, want: "miss"},
		"values in another order":        {one: []string{"X-A: 1", "X-A: 2"}, other: []string{"X-A: 2", "X-A: 1"}, want: "miss"},
		"two values in one":              {one: []string{"X-A: 1", "X-A: 2"}, other: []string{"X-A: 1, 2"}, want: "miss"},
		"two fields in one":              {one: []string{"X-A: 1", "X-B: 2"}, other: []string{"X-A: 1\nx-b:2"}, want: "miss"},
		"another host":                   {change: func(r *Request) { r.Host = "b" }, want: "miss"},
		"another target":                 {change: func(r *Request) { r.Target = "/?" }, want: "miss"},
		"another Service":                {change: func(r *Request) { r.Service = "team/app:81" }, want: "miss"},
		"a body":                         {change: func(r *Request) { r.Plain = false }, want: "bypass"},
		"a change":                       {change: func(r *Request) { r.Method = "POST" }, want: "bypass"},
		"the head of it":                 {change: func(r *Request) { r.Method = "HEAD" }, want: "hit one"},
		"a part of it":                   {other: []string{"Range: bytes=0-1"}, want: "bypass"},
		"if it is the same":              {other: []string{`If-Match: "a"`}, want: "bypass"},
		"another language, as Vary says": {one: []string{"Accept-Language: en"}, response: []string{"Vary: Accept-Encoding, accept-language"}, other: []string{"Accept-Language: de"}, want: "miss"},
		"none of it, as Vary says":       {one: []string{"Accept-Language: "}, response: []string{"Vary: Accept-Language"}, want: "miss"},
		"the same one, as Vary says":     {one: []string{"Accept-Language: en"}, response: []string{"Vary: Accept-Encoding", "Vary: Accept-Language"}, other: []string{"Accept-Language: en"}, want: "hit one"},
		"it wants a new one":             {other: []string{"Cache-Control: no-cache"}, want: "miss"},
		"it wants a new one, of old":     {other: []string{"Pragma: no-cache"}, want: "miss"},
		"it says what nobody knows":      {other: []string{`Cache-Control: "`}, want: "miss"},
		"only a stored one":              {other: []string{"Cache-Control: only-if-cached"}, want: "hit one"},
		"only another stored one":        {other: []string{"Cache-Control: only-if-cached", "Cookie: a=1"}, want: "absent"},
		"one that lasts":                 {other: []string{"Cache-Control: min-fresh=100"}, want: "miss"},
	} {
		s, _ := newStore(1 << 20)
		if !keep(s, get(tc.one...), "one", append([]string{"Cache-Control: max-age=60"}, tc.response...)...) {
			t.Errorf("%s: it is not kept", name)
		}
		other := get(tc.other...)
		if tc.change != nil {
			tc.change(other)
		}
		if got := look(s, other); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	s, _ := newStore(1 << 20)
	if keep(s, get(), "one", "Cache-Control: max-age=60", "Vary: Accept, *") {
		t.Error("a response that is for one request is kept")
	}
}

func TestAResponseBecomesStaleAndIsConfirmed(t *testing.T) {
	s, clock := newStore(1 << 20)
	keep(s, get(), "one", "Cache-Control: max-age=60", `ETag: "a"`, "Age: 10", "X-A: before", "Content-Type: text/plain")
	clock.SetTime(start.Add(40 * time.Second))
	_, found := s.Find(anHour, get())
	if !slices.Contains(found.Fields, upstream.Field{Name: "Age", Value: "50"}) || !slices.Contains(found.Fields, upstream.Field{Name: "Cache-Status", Value: "slipway; hit; ttl=10"}) {
		t.Errorf("it does not say how old it is: %v", found.Fields)
	}
	for _, asked := range []string{"Cache-Control: max-age=49", "Cache-Control: min-fresh=10"} {
		if got := look(s, get(asked)); !strings.HasPrefix(got, "stale") {
			t.Errorf("%s: %s", asked, got)
		}
	}
	clock.SetTime(start.Add(50 * time.Second))
	if got := look(s, get(`If-None-Match: "b"`)); got != "miss" {
		t.Errorf("the client's own condition: %s", got)
	}
	result, found := s.Find(anHour, get())
	if result != Stale {
		t.Fatalf("after its time: %v", result)
	}
	if diff := cmp.Diff(fieldsOf(`If-None-Match: "a"`), found.Conditions()); diff != "" {
		t.Errorf("the backend is asked: -want +got:\n%s", diff)
	}
	given := s.Confirm(anHour, get(), found, fieldsOf("Cache-Control: max-age=100", `ETag: "a"`, "X-A: after", "Content-Length: 0", "Content-Type: text/html"), clock.Now())
	if given == nil || string(given.Body) != "one" || given.Status != 200 {
		t.Fatalf("confirmed: %+v", given)
	}
	if type_, _, _ := one(given.Fields, "Content-Type"); type_ != "text/plain" {
		t.Errorf("a 304 has changed the type of the body: %v", given.Fields)
	}
	if value, _, several := one(given.Fields, "X-A"); value != "after" || several {
		t.Errorf("a 304 has changed nothing: %v", given.Fields)
	}
	clock.SetTime(start.Add(149 * time.Second))
	if got := look(s, get()); got != "hit one" {
		t.Errorf("after it was confirmed: %s", got)
	}
	clock.SetTime(start.Add(151 * time.Second))
	_, found = s.Find(anHour, get())
	if given := s.Confirm(anHour, get(), found, fieldsOf(`ETag: "b"`), clock.Now()); given != nil {
		t.Error("a 304 for another response counts")
	}
	if got := look(s, get()); got != "miss" {
		t.Errorf("after a 304 for another response: %s", got)
	}
}

// What a request has changed is not given any more, and not kept if it was on the way.
func TestAChangeForgetsWhatWasThere(t *testing.T) {
	s, _ := newStore(1 << 20)
	keep(s, get("Cookie: a=1"), "one", "Cache-Control: max-age=60")
	keep(s, get(), "one", "Cache-Control: max-age=60")
	since := s.Since(get())
	underWay := s.Record(anHour, get("X-A: 1"), since, 200, fieldsOf("Cache-Control: max-age=60"), -1, start)
	read := get()
	read.Method = "OPTIONS"
	s.Changed(read)
	if got := look(s, get()); got != "hit one" {
		t.Errorf("after a request that changes nothing: %s", got)
	}
	post := get("Cookie: a=2")
	post.Method, post.Plain = "POST", false
	s.Changed(post)
	underWay.Add([]byte("old")).Keep()
	for _, r := range []*Request{get(), get("Cookie: a=1"), get("X-A: 1")} {
		if got := look(s, r); got != "miss" {
			t.Errorf("after the change: %s", got)
		}
	}
	if use := s.Use(); use.Bytes != 0 || use.Responses != 0 || s.coming != 0 || len(s.shelves) != 0 {
		t.Errorf("room is left taken: %+v, %d coming", use, s.coming)
	}
}

// Whoever asks for much of one Service does not push out what others have.
func TestTheServiceWithTheMostMakesRoom(t *testing.T) {
	s, _ := newStore(100 << 10)
	for n := range 10 {
		r := get()
		r.Service, r.Target = "quiet/app:80", fmt.Sprint("/", n)
		keep(s, r, strings.Repeat("q", 1<<10), "Cache-Control: max-age=60")
	}
	for n := range 1000 {
		r := get()
		r.Target = fmt.Sprint("/", n)
		keep(s, r, strings.Repeat("x", 1<<10), "Cache-Control: max-age=60")
		if use := s.Use(); use.Bytes > 100<<10 {
			t.Fatalf("%d bytes are kept", use.Bytes)
		}
	}
	for n := range 10 {
		r := get()
		r.Service, r.Target = "quiet/app:80", fmt.Sprint("/", n)
		if got := look(s, r); !strings.HasPrefix(got, "hit") {
			t.Errorf("response %d of the quiet Service: %s", n, got)
		}
	}
	r := get()
	r.Target = "/999"
	if got := look(s, r); !strings.HasPrefix(got, "hit") {
		t.Errorf("the last one: %s", got)
	}
	for n := range 2 * maxVariants {
		keep(s, get(fmt.Sprint("X-A: ", n)), "variant", "Cache-Control: max-age=60")
	}
	if kept := len(s.places[placeOf(get())]); kept > maxVariants {
		t.Errorf("one place has %d responses", kept)
	}
}

// What is on the way is bounded too.
func TestWhatIsOnTheWayIsBounded(t *testing.T) {
	s, _ := newStore(100 << 10)
	var all []*Recording
	for n := range 10 {
		r := get()
		r.Target = fmt.Sprint("/", n)
		recording := s.Record(anHour, r, s.Since(r), 200, fieldsOf("Cache-Control: max-age=60"), -1, start)
		all = append(all, recording.Add(make([]byte, 20<<10)))
	}
	if s.coming > 50<<10 {
		t.Errorf("%d bytes are on the way", s.coming)
	}
	kept := 0
	for _, recording := range all {
		if recording != nil {
			kept++
		}
		recording.Drop()
	}
	if kept == 0 || s.coming != 0 {
		t.Errorf("%d are kept, and %d bytes stay taken", kept, s.coming)
	}
	small := &Policy{MaxAge: time.Hour, MaxBytes: 10}
	if s.Record(small, get(), 0, 200, fieldsOf("Cache-Control: max-age=60"), 11, start) != nil {
		t.Error("a body that is declared too large is kept")
	}
	if s.Record(small, get(), s.Since(get()), 200, fieldsOf("Cache-Control: max-age=60"), -1, start).Add(make([]byte, 11)) != nil || s.coming != 0 {
		t.Error("a body that turns out too large is kept")
	}
}

// Any number of requests at a time leave the room as it is.
func TestManyAtATime(t *testing.T) {
	s, _ := newStore(200 << 10)
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			for range 2000 {
				r := get(fmt.Sprint("Cookie: ", random.IntN(3)))
				r.Target = fmt.Sprint("/", random.IntN(40))
				switch random.IntN(10) {
				case 0:
					r.Method = "PUT"
					s.Changed(r)
				case 1:
					s.Record(anHour, r, s.Since(r), 200, fieldsOf("Cache-Control: max-age=60"), -1, start).Add(make([]byte, random.IntN(50<<10))).Drop()
				default:
					want := r.Target + r.Fields[0].Value
					if result, found := s.Find(anHour, r); result == Hit && !strings.HasPrefix(string(found.Body), want+" ") {
						t.Errorf("%s got %.40q", want, found.Body)
					}
					keep(s, r, want+" "+strings.Repeat("x", random.IntN(20<<10)), "Cache-Control: max-age=60")
				}
			}
		})
	}
	wait.Wait()
	sum := int64(0)
	for _, all := range s.places {
		for _, e := range all {
			sum += e.size
		}
	}
	if s.coming != 0 || s.used != sum || s.used > s.room {
		t.Errorf("%d bytes are counted, %d are kept, %d are on the way", s.used, sum, s.coming)
	}
}

// FuzzWhoGetsAResponse compares with the rule in other words: a request gets the response of another one only if both are for the
// same, and every field that both do not have alike is one of those with which browsers differ, and Vary does not name it.
func FuzzWhoGetsAResponse(f *testing.F) {
	f.Add("Cookie: a=1", "Cookie: a=2", "Vary: Cookie")
	f.Add("User-Agent: a", "User-Agent: b", "Cache-Control: max-age=60")
	f.Add("X-A: 1\nX-B: 2", "X-A: 1\nx-b: 2", "Vary: X-A")
	f.Add("A: \nA: x", "A:  x", "Vary: accept")
	f.Fuzz(func(t *testing.T, one, other, response string) {
		s, _ := newStore(1 << 20)
		first, second := get(strings.Split(one, "\n")...), get(strings.Split(other, "\n")...)
		said := append(strings.Split(response, "\n"), "Cache-Control: max-age=60")
		if !keep(s, first, "one", said...) {
			return
		}
		if result, _ := s.Find(anHour, second); result != Hit {
			return
		}
		values := func(r *Request, name string) (all []string) {
			for _, field := range r.Fields {
				if strings.ToLower(field.Name) == name {
					all = append(all, field.Value)
				}
			}
			return all
		}
		named := ""
		for _, field := range fieldsOf(said...) {
			if strings.EqualFold(field.Name, "Vary") {
				named += "," + strings.ToLower(field.Value)
			}
		}
		for _, field := range append(slices.Clone(first.Fields), second.Fields...) {
			name := strings.ToLower(field.Name)
			if slices.Equal(values(first, name), values(second, name)) {
				continue
			}
			varies := slices.ContainsFunc(strings.Split(named, ","), func(in string) bool { return strings.Trim(in, " \t") == name })
			if varies || !isUnkeyed(name) {
				t.Errorf("%q differs: %q and %q", name, values(first, name), values(second, name))
			}
		}
	})
}
