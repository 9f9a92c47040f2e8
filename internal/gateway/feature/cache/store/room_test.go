package store

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a request has changed is not given any more, and not kept if it was on the way.
func TestAChangeForgetsWhatWasThere(t *testing.T) {
	s, _ := newStore(1 << 20)
	keep(s, get("Cookie: a=1"), "one", "Cache-Control: max-age=60")
	keep(s, get(), "one", "Cache-Control: max-age=60")
	l := s.Look(anHour, get("X-A: 1"))
	underWay := l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1)
	other := get()
	other.Target = "/other"
	change(s, other)
	if got := look(s, get()); got != "hit one" {
		t.Errorf("after a change of another page: %s", got)
	}
	post := get("Cookie: a=2")
	post.Backend.Way = "81"
	change(s, post)
	underWay.Add([]byte("old")).Keep()
	l.Close()
	for _, r := range []*Request{get(), get("Cookie: a=1"), get("X-A: 1")} {
		if got := look(s, r); got != "miss" {
			t.Errorf("after the change: %s", got)
		}
	}
	wantConsistent(t, s)
	if diff := cmp.Diff(Use{}, s.Use()); diff != "" || len(s.namespaces) != 0 || len(s.pages) != 0 {
		t.Errorf("something is left: -want +got:\n%s", diff)
	}
}

// Whoever changes many pages of his own keeps nobody else from storing.
func TestChangesOfOthersKeepNothingFromBeingStored(t *testing.T) {
	s, _ := newStore(1 << 20)
	l := s.Look(anHour, get())
	recording := l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1)
	for n := range 10000 {
		change(s, getAt("other", "app", fmt.Sprint("/", n)))
	}
	recording.Add([]byte("one")).Keep()
	l.Close()
	if got := look(s, get()); got != "hit one" {
		t.Errorf("it was not stored: %s", got)
	}
}

// The newest response counts, and takes the place of those before it (RFC 9111, 4.1).
func TestTheNewestResponseCounts(t *testing.T) {
	const fresh = "Cache-Control: max-age=60"
	english, german := get("Accept-Language: en"), get("Accept-Language: de")
	for name, tc := range map[string]struct {
		before, after   []string
		english, german string // after both were asked for in English
	}{
		"without Vary, then with":  {nil, []string{"Vary: Accept-Language"}, "hit two", "miss"},
		"with Vary, then without":  {[]string{"Vary: Accept-Language"}, nil, "hit two", "hit two"},
		"another Vary":             {[]string{"Vary: Accept-Language"}, []string{"Vary: User-Agent"}, "hit two", "hit two"},
		"in another order":         {[]string{"Vary: Accept-Language, User-Agent"}, []string{"Vary: User-Agent, Accept-Language"}, "hit two", "miss"},
		"no longer to be kept":     {nil, []string{"Cache-Control: private"}, "miss", "miss"},
		"no longer for others":     {nil, []string{"Vary: *"}, "miss", "miss"},
		"with a cookie":            {nil, []string{"Set-Cookie: a=1"}, "miss", "miss"},
		"a bound of its own route": {nil, []string{"Cache-Control: max-age=0"}, "miss", "miss"},
	} {
		s, clock := newStore(1 << 20)
		keep(s, english, "one", append(tc.before, fresh)...)
		clock.SetTime(start.Add(time.Second))
		keep(s, english, "two", append(tc.after, fresh)...)
		if got := look(s, english); got != tc.english {
			t.Errorf("%s: english: %s, want %s", name, got, tc.english)
		}
		if got := look(s, german); got != tc.german {
			t.Errorf("%s: german: %s, want %s", name, got, tc.german)
		}
		wantConsistent(t, s)
	}
	s, clock := newStore(1 << 20) // a stale one must not hide newer ones for ever
	keep(s, get(), "one", fresh)
	clock.SetTime(start.Add(time.Hour))
	keep(s, english, "two", fresh, "Vary: Accept-Language")
	keep(s, german, "three", fresh, "Vary: Accept-Language")
	if got := look(s, english) + look(s, german); got != "hit twohit three" {
		t.Error(got)
	}
	// Two responses may be for the same request, if neither was for that of the other.
	s, _ = newStore(1 << 20)
	keep(s, get("Accept-Language: en", "User-Agent: a"), "by language", fresh, "Vary: Accept-Language")
	keep(s, get("Accept-Language: de", "User-Agent: b"), "by browser", fresh, "Vary: User-Agent")
	if got := look(s, get("Accept-Language: en", "User-Agent: b")); got != "hit by browser" {
		t.Errorf("of two the newest is not given: %s", got)
	}
}

// What was not used for the longest time goes first, among the responses of a page too.
func TestWhatIsUsedStays(t *testing.T) {
	s, _ := newStore(1 << 20)
	keep(s, get("X-A: used"), "used", "Cache-Control: max-age=60")
	for n := range 2 * maxVariants {
		keep(s, get(fmt.Sprint("X-A: ", n)), "variant", "Cache-Control: max-age=60")
		look(s, get("X-A: used"))
	}
	if got := look(s, get("X-A: used")); got != "hit used" {
		t.Errorf("the one that is used: %s", got)
	}
	if got := look(s, get("X-A: 0")); got != "miss" {
		t.Errorf("the oldest of the others: %s", got)
	}
	if use := s.Use(); use.Responses != maxVariants || use.Evicted != maxVariants+1 {
		t.Errorf("%+v", use)
	}
	wantConsistent(t, s)
}

// Whoever asks for much of one Service, or has many of them, does not push out what others have.
func TestWhoHasTheMostMakesRoom(t *testing.T) {
	for name, services := range map[string]int{"one Service": 1, "many Services": 50} {
		s, _ := newStore(200 << 10)
		for n := range 10 {
			keep(s, getAt("quiet", "app", fmt.Sprint("/", n)), strings.Repeat("q", 1<<10), "Cache-Control: max-age=60")
			keep(s, getAt("loud", "quiet", fmt.Sprint("/", n)), strings.Repeat("q", 1<<10), "Cache-Control: max-age=60")
		}
		for n := range 1000 {
			keep(s, getAt("loud", fmt.Sprint("app", n%services), fmt.Sprint("/", n)), strings.Repeat("x", 1<<10), "Cache-Control: max-age=60")
			if use := s.Use(); use.Bytes > 200<<10 {
				t.Fatalf("%d bytes are kept", use.Bytes)
			}
		}
		for n := range 10 {
			if got := look(s, getAt("quiet", "app", fmt.Sprint("/", n))); !strings.HasPrefix(got, "hit") {
				t.Errorf("%s: response %d of the quiet namespace: %s", name, n, got)
			}
			if got := look(s, getAt("loud", "quiet", fmt.Sprint("/", n))); services == 1 && !strings.HasPrefix(got, "hit") {
				t.Errorf("%s: response %d of the quiet Service: %s", name, n, got)
			}
		}
		if got := look(s, getAt("loud", fmt.Sprint("app", 999%services), "/999")); !strings.HasPrefix(got, "hit") {
			t.Errorf("%s: the last one: %s", name, got)
		}
		wantConsistent(t, s)
	}
}

// What comes is bounded, and whoever has less makes no room for it.
func TestAStampedeEmptiesNobodysShelf(t *testing.T) {
	for name, quiet := range map[string]func(n int) *Request{
		"other namespaces":                 func(n int) *Request { return getAt(fmt.Sprint("quiet", n%8), "app", fmt.Sprint("/", n)) },
		"other Services of its namespaces": func(n int) *Request { return getAt("team", fmt.Sprint("quiet", n%8), fmt.Sprint("/", n)) },
	} {
		s, _ := newStore(1 << 20)
		for n := range 80 {
			keep(s, quiet(n), strings.Repeat("q", 9<<10), "Cache-Control: max-age=60")
		}
		var lookups []*Lookup
		var recordings []*Recording
		began := 0
		for n := range 1000 {
			r := get()
			r.Client = netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})
			l := s.Look(anHour, r)
			recording := l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1).Add(make([]byte, 20<<10))
			lookups, recordings = append(lookups, l), append(recordings, recording)
			if recording != nil {
				began++
			}
		}
		if use := s.Use(); began == 0 || use.Held > 1<<19 || use.Bytes > 1<<20 {
			t.Errorf("%s: %d are kept, %+v", name, began, use)
		}
		for n := range 80 {
			if got := look(s, quiet(n)); !strings.HasPrefix(got, "hit") {
				t.Errorf("%s: page %d: %s", name, n, got)
			}
		}
		for i, l := range lookups {
			recordings[i].Drop()
			l.Close()
		}
		if !keep(s, get(), "page", "Cache-Control: max-age=60") {
			t.Errorf("%s: afterwards there is no room", name)
		}
		wantConsistent(t, s)
	}
}

// A client that takes everything slowly does not keep others from storing, and what is only declared takes nothing.
func TestWhatIsOnTheWayIsShared(t *testing.T) {
	s, _ := newStore(1 << 20)
	record := func(r *Request, client byte, length int64) (*Lookup, *Recording) {
		r.Client = netip.AddrFrom4([4]byte{192, 0, 2, client})
		l := s.Look(anHour, r)
		return l, l.Record(200, fieldsOf("Cache-Control: max-age=60"), length)
	}
	var lookups []*Lookup
	var recordings []*Recording
	for n := range 200 {
		l, recording := record(getAt("team", fmt.Sprint("app", n), "/"), 1, 1<<20)
		lookups, recordings = append(lookups, l), append(recordings, recording)
	}
	if use := s.Use(); use.Held > 200*(overhead+1<<10) {
		t.Errorf("what is only declared takes %d bytes", use.Held)
	}
	for i := range recordings {
		recordings[i] = recordings[i].Add(make([]byte, 10<<10))
	}
	l, recording := record(getAt("other", "app", "/"), 2, 10<<10)
	if recording = recording.Add(make([]byte, 10<<10)); recording == nil {
		t.Errorf("another client finds no room: %+v", s.Use())
	}
	recording.Keep()
	l.Close()
	for i, l := range lookups {
		recordings[i].Drop()
		l.Close()
	}
	wantConsistent(t, s)
	small := &Policy{MaxAge: time.Hour, MaxBytes: 10}
	l = s.Look(small, get())
	defer l.Close()
	if l.Record(200, fieldsOf("Cache-Control: max-age=60"), 11) != nil {
		t.Error("a body that is declared too large is kept")
	}
	if l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1).Add(make([]byte, 11)) != nil || s.Use().Held != 0 {
		t.Error("a body that turns out too large is kept")
	}
}

// What is given to slow clients stays counted when it is forgotten, and is bounded.
func TestSlowClientsHoldNoMoreThanTheirShare(t *testing.T) {
	const pages, size = 100, 10 << 10
	s, _ := newStore(2 << 20)
	slow := func(n int) *Request {
		r := getAt("team", "app", fmt.Sprint("/", n))
		r.Client = netip.AddrFrom4([4]byte{192, 0, 2, 1})
		return r
	}
	var lookups []*Lookup
	hits := 0
	for n := range pages {
		keep(s, slow(n), strings.Repeat("x", size), "Cache-Control: max-age=60")
	}
	for n := range pages {
		l := s.Look(anHour, slow(n))
		lookups = append(lookups, l)
		if l.Result == Hit {
			hits++
		} else if l.Record(200, fieldsOf("Cache-Control: max-age=60"), 1) != nil {
			t.Error("a client that holds too much brings more")
		}
	}
	if hits == 0 || hits == pages {
		t.Errorf("it holds %d of %d pages", hits, pages)
	}
	before := s.Use()
	for n := range pages {
		change(s, slow(n))
	}
	if use := s.Use(); use.Held != before.Held || use.Bytes != use.Held || use.Held < int64(hits*size) || use.Responses != 0 {
		t.Errorf("after all was forgotten: %+v, before %+v", use, before)
	}
	other := getAt("other", "app", "/")
	keep(s, other, "other", "Cache-Control: max-age=60")
	if got := look(s, other); got != "hit other" {
		t.Errorf("another namespace: %s", got)
	}
	for n := range 1000 { // whoever makes room must not wait for those that are lent
		keep(s, getAt("third", "app", fmt.Sprint("/", n)), strings.Repeat("x", size), "Cache-Control: max-age=60")
		if use := s.Use(); use.Bytes > 2<<20 {
			t.Fatalf("%+v", use)
		}
	}
	for _, l := range lookups {
		if l.Result == Hit && len(l.Found.Body) != size {
			t.Errorf("a slow client gets %d bytes", len(l.Found.Body))
		}
		l.Close()
		l.Close()
	}
	wantConsistent(t, s)
}

// What is counted is not less than what there is.
func TestAResponseIsCountedAsItIs(t *testing.T) {
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for name, fields := range map[string]int{"few fields": 1, "many small fields": 100} {
		s, _ := newStore(1 << 30)
		var said []string
		for n := range fields {
			said = append(said, fmt.Sprintf("X%d: %d", n, n))
		}
		said = append(said, "Cache-Control: max-age=60", "Vary: User-Agent")
		before := heap()
		for n := range 2000 {
			r := getAt("team", "app", fmt.Sprint("/", n))
			r.Fields = fieldsOf(fmt.Sprint("User-Agent: ", n))
			keep(s, r, "a small body", said...)
		}
		if takes, counted := heap()-before, s.Use().Bytes; takes > counted {
			t.Errorf("%s: %d responses take %d bytes, and %d are counted", name, s.Use().Responses, takes, counted)
		}
		runtime.KeepAlive(s)
	}
}

// What clients and backends send does not decide how long others wait: a lookup reads the fields of its request once, however many
// responses there are.
func TestTheWorkOfALookupIsThatOfItsRequest(t *testing.T) {
	names := make([]string, 0, maxVary)
	for name := range unkeyed {
		if len(names) < maxVary {
			names = append(names, name)
		}
	}
	ask := func(n int) *Request {
		r := get()
		for i := range 400 {
			r.Fields = append(r.Fields, fieldsOf(fmt.Sprintf("X-%d: %d", i, i))...)
		}
		for _, name := range names {
			if name != "cache-control" && !strings.HasPrefix(name, "if-") && name != "pragma" {
				r.Fields = append(r.Fields, fieldsOf(fmt.Sprintf("%s: %d", name, n))...)
			}
		}
		return r
	}
	work := func(variants int) float64 {
		s, _ := newStore(16 << 20)
		for n := range variants {
			keep(s, ask(n), "one", "Cache-Control: max-age=60", "Vary: "+strings.Join(names, ","))
		}
		r := ask(-1)
		return testing.AllocsPerRun(10, func() { s.Look(anHour, r).Close() })
	}
	if few, many := work(1), work(maxVariants); many > few {
		t.Errorf("%.0f allocations with %d responses, %.0f with one", many, maxVariants, few)
	}
}

// A table that leads no longer to a backend ends what is kept of it, also what is on the way.
func TestBackendsThatAreGoneAreForgotten(t *testing.T) {
	s, _ := newStore(1 << 20)
	stays, goes := getAt("team", "stays", "/"), getAt("team", "goes", "/")
	both := map[Backend]bool{stays.Backend: true, goes.Backend: true}
	s.SetBackends(both)
	keep(s, stays, "one", "Cache-Control: max-age=60")
	keep(s, goes, "one", "Cache-Control: max-age=60")
	l := s.Look(anHour, goes)
	recording := l.Record(200, fieldsOf("Cache-Control: max-age=60"), -1)
	s.SetBackends(map[Backend]bool{stays.Backend: true})
	recording.Add([]byte("two")).Keep()
	l.Close()
	if got := look(s, stays) + ", " + look(s, goes); got != "hit one, miss" {
		t.Error(got)
	}
	s.SetBackends(both)
	if got := look(s, goes); got != "miss" {
		t.Errorf("it came back: %s", got)
	}
	wantConsistent(t, s)
}

// A small container keeps room for everything else.
func TestTheRoomFollowsTheMemoryOfTheContainer(t *testing.T) {
	for memory, want := range map[int64]int64{0: 64 << 20, 64 << 20: 16 << 20, 128 << 20: 32 << 20, 1 << 30: 64 << 20} {
		if got := RoomWithin(memory); got != want {
			t.Errorf("of %d bytes: %d, want %d", memory, got, want)
		}
	}
}
