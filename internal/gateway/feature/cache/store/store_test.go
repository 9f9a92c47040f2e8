package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var anHour = &Policy{MaxAge: time.Hour, MaxBytes: 1 << 20}

// newStore is a Store whose time passes when it is told to.
func newStore(room int64) (*Store, *clocktesting.FakePassiveClock) {
	clock := clocktesting.NewFakePassiveClock(start)
	return New(room, clock), clock
}

// keep keeps a response, and reports whether it is kept.
func keep(s *Store, r *Request, body string, fields ...string) bool {
	return keepWith(s, anHour, r, 200, body, fields...)
}

func keepWith(s *Store, p *Policy, r *Request, status int, body string, fields ...string) bool {
	l := s.Look(p, r)
	defer l.Close()
	recording := l.Record(status, fieldsOf(fields...), int64(len(body)))
	recording = recording.Add([]byte(body))
	recording.Keep()
	return recording != nil
}

// look returns what a request finds: the result, and the body.
func look(s *Store, r *Request) string {
	l := s.Look(anHour, r)
	defer l.Close()
	if l.Found == nil {
		return l.Result.String()
	}
	return l.Result.String() + " " + string(l.Found.Body)
}

// getAt is a request for another page of another Service.
func getAt(namespace, service, target string) *Request {
	r := get()
	r.Backend, r.Target = Backend{Namespace: namespace, Service: service, Way: "80"}, target
	return r
}

func change(s *Store, r *Request) { s.Changed(r.Backend, r.Host, r.Target) }

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
		"another browser":                {one: []string{"User-Agent: a", "Sec-Ch-Ua: a", "Sec-Fetch-Mode: a"}, other: []string{"User-Agent: b"}, want: "hit one"},
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
		"another Service":                {change: func(r *Request) { r.Backend.Service = "other" }, want: "miss"},
		"another namespace":              {change: func(r *Request) { r.Backend.Namespace = "other" }, want: "miss"},
		"another port, or TLS":           {change: func(r *Request) { r.Backend.Way = "81" }, want: "miss"},
		"another kind of document":       {one: []string{"Accept: text/html"}, other: []string{"Accept: application/json"}, want: "miss"},
		"an unknown field of a browser":  {one: []string{"Sec-Purpose: prefetch"}, want: "miss"},
		"a hint that was asked for":      {one: []string{"Sec-Ch-Prefers-Color-Scheme: dark"}, want: "miss"},
		"another coding, unsaid":         {one: []string{"Accept-Encoding: br"}, response: []string{"Content-Encoding: br"}, want: "miss"},
		"the same coding, unsaid":        {one: []string{"Accept-Encoding: br"}, response: []string{"Content-Encoding: br"}, other: []string{"Accept-Encoding: br"}, want: "hit one"},
		"as Vary says, of what counts":   {one: []string{"Cookie: a=1"}, response: []string{"Vary: Cookie"}, other: []string{"Cookie: a=1"}, want: "hit one"},
		"a part, only a stored one":      {other: []string{"Range: bytes=0-1", "Cache-Control: only-if-cached"}, want: "absent"},
		"a body":                         {change: func(r *Request) { r.Plain = false }, want: "bypass"},
		"a change":                       {change: func(r *Request) { r.Method = "POST" }, want: "bypass"},
		"the head of it":                 {change: func(r *Request) { r.Method = "HEAD" }, want: "hit one"},
		"a part of it":                   {other: []string{"Range: bytes=0-1"}, want: "bypass"},
		"if it is the same":              {other: []string{`If-Match: "a"`}, want: "bypass"},
		"another language, as Vary says": {one: []string{"Accept-Language: en"}, response: []string{"Vary: Accept-Encoding, accept-language"}, other: []string{"Accept-Language: de"}, want: "miss"},
		"none of it, as Vary says":       {one: []string{"Accept-Language: "}, response: []string{"Vary: Accept-Language"}, want: "miss"},
		"the same one, as Vary says":     {one: []string{"Accept-Language: en"}, response: []string{"Vary: Accept-Encoding", "Vary: Accept-Language"}, other: []string{"Accept-Language: en"}, want: "hit one"},
		"it wants a new one":             {other: []string{"Cache-Control: no-cache"}, want: "stale"},
		"it wants a new one, of old":     {other: []string{"Pragma: no-cache"}, want: "stale"},
		"it says what nobody knows":      {other: []string{`Cache-Control: "`}, want: "stale"},
		"only a stored one":              {other: []string{"Cache-Control: only-if-cached"}, want: "hit one"},
		"only another stored one":        {other: []string{"Cache-Control: only-if-cached", "Cookie: a=1"}, want: "absent"},
		"one that lasts":                 {other: []string{"Cache-Control: min-fresh=100"}, want: "stale"},
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
	for _, of := range []string{"Accept, *", "TE", "Expect, Accept-Language"} {
		if keep(s, get(), "one", "Cache-Control: max-age=60", "Vary: "+of) {
			t.Errorf("Vary: %s: a response that is for one request is kept", of)
		}
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
					change(s, r)
				case 1:
					l := s.Look(anHour, r)
					l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1).Add(make([]byte, random.IntN(50<<10))).Drop()
					l.Close()
				case 3, 4:
					fresh := *r
					fresh.Fields = append(fresh.Fields, fieldsOf("Cache-Control: no-cache")...)
					l := s.Look(anHour, &fresh)
					if len(l.Conditions()) > 0 {
						if given := l.Confirm(fieldsOf("X-Large: "+strings.Repeat("x", random.IntN(20<<10)), fmt.Sprintf(`ETag: "%d"`, random.IntN(8)/7))); given != nil && !strings.HasPrefix(string(given.Body), r.Target) {
							t.Errorf("%s got %.40q", r.Target, given.Body)
						}
					}
					l.Close()
				case 2:
					s.SetBackends(map[Backend]bool{r.Backend: random.IntN(8) > 0})
				default:
					want := r.Target + r.Fields[0].Value
					l := s.Look(anHour, r)
					if l.Result == Hit && !strings.HasPrefix(string(l.Found.Body), want+" ") {
						t.Errorf("%s got %.40q", want, l.Found.Body)
					}
					keep(s, r, want+" "+strings.Repeat("x", random.IntN(20<<10)), "Cache-Control: max-age=60", `ETag: "0"`)
					l.Close()
				}
			}
		})
	}
	wait.Wait()
	wantConsistent(t, s)
}

// wantConsistent compares what is counted with what there is, while nothing is under way.
func wantConsistent(t *testing.T, s *Store) {
	t.Helper()
	sum, count := int64(0), 0
	byShelf := map[string]int64{}
	for _, p := range s.pages {
		if p.lookups != 0 || len(p.entries) == 0 {
			t.Errorf("a page with %d responses and %d lookups is left", len(p.entries), p.lookups)
		}
		for _, e := range p.entries {
			sum += e.whole()
			count++
			byShelf[e.backend.serviceName()] += e.whole()
		}
	}
	shelved := 0
	for name, n := range s.namespaces {
		free := 0
		for service, on := range n.services {
			if on.used != byShelf[name+"/"+service] || on.used == 0 {
				t.Errorf("%s/%s: %d bytes are counted, want %d", name, service, on.used, byShelf[name+"/"+service])
			}
			free += on.recent.Len()
		}
		if n.free != free {
			t.Errorf("%s: %d can go, want %d", name, n.free, free)
		}
		shelved += free
	}
	if use := s.Use(); use.Bytes != sum || use.Bytes > s.room || use.Held != 0 || use.Responses != count || shelved != count {
		t.Errorf("%+v is counted, %d bytes of %d responses are kept, %d of them can go", use, sum, count, shelved)
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
		if !strings.HasPrefix(look(s, second), "hit") {
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
			if varies || !unkeyed[name] {
				t.Errorf("%q differs: %q and %q", name, values(first, name), values(second, name))
			}
		}
	})
}
