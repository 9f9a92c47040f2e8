package serve

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// guarded are routes that compare a password only when the test allows it.
type guarded struct {
	t      *testing.T
	engine *Engine
	routes map[string]*Step // by path

	step  chan struct{} // each value allows one comparison; closed: all
	wait  sync.WaitGroup
	mu    sync.Mutex
	codes map[string]int // answers by "client code"
}

func guard(t *testing.T) *guarded {
	t.Helper()
	hash := strings.Repeat("x", 53)
	users := map[string][][]byte{"carol": {[]byte("$2y$10$" + hash)}, "dave": {[]byte("$2y$10$" + hash[1:] + "d")}}
	g := &guarded{t: t, engine: New(&Options{Clock: clock.RealClock{}}), step: make(chan struct{}), codes: map[string]int{}}
	of := g.engine.Table().Of(&auth.Policy{Basic: &auth.Basic{Users: users}}, 0, nil, 0)
	g.routes = map[string]*Step{"/": of, "/soon": of}
	p := g.engine.passwords
	p.mu.Lock()
	p.compare = func(_, password []byte) error {
		<-g.step
		if string(password) != "secret" {
			return errors.New("wrong")
		}
		return nil
	}
	p.mu.Unlock()
	t.Cleanup(func() {
		close(g.step)
		g.wait.Wait()
	})
	return g
}

// login sends a request of a client, and records the answer.
func (g *guarded) login(client, path, user, password string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.SetBasicAuth(user, password)
	e, recorder, timeouts := new(exchange.Exchange), httptest.NewRecorder(), model.Timeouts{}
	if path == "/soon" {
		timeouts.Request = 50 * time.Millisecond
	}
	e.Begin(&exchange.Process{Clock: clock.RealClock{}, ClientTimeout: time.Minute, SendsAway: func() bool { return false }}, nil, &exchange.Steps{}, recorder, request)
	e.Timeouts, e.Client.Address = &timeouts, netip.MustParseAddr(client)
	g.wait.Go(func() {
		status := http.StatusOK
		if !g.routes[path].Admit(e) {
			status = recorder.Code
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.codes[client+" "+strconv.Itoa(status)+recorder.Header().Get("Retry-After")]++
	})
}

func (g *guarded) answers(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.codes[key]
}

// queued returns how many passwords wait, without the one that is compared.
func (g *guarded) queued() int {
	p := g.engine.passwords
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queued
}

// comparing reports whether a hash is compared now.
func (g *guarded) comparing() bool {
	p := g.engine.passwords
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running && p.queued == 0
}

func TestAGuesserDoesNotKeepOthersOut(t *testing.T) {
	g := guard(t)
	g.login("192.0.2.1", "/", "carol", "first")
	eventually(t, "a hash is compared", g.comparing)
	for i := range 59 {
		g.login("192.0.2.1", "/", "carol", strconv.Itoa(i))
	}
	eventually(t, "what is above the share of one client is refused at once", func() bool {
		return g.answers("192.0.2.1 4291") == 60-1-maxClientGuesses
	})
	g.login("192.0.2.2", "/", "carol", "secret")
	eventually(t, "the right one waits", func() bool { return g.queued() == maxClientGuesses+1 })
	g.step <- struct{}{} // the one that was compared when it came
	g.step <- struct{}{} // itself
	eventually(t, "it is let in with the second hash", func() bool { return g.answers("192.0.2.2 200") == 1 })
	g.login("192.0.2.2", "/", "carol", "secret")
	eventually(t, "then it is remembered", func() bool { return g.answers("192.0.2.2 200") == 2 })
}

func TestAFloodFromManyAddressesIsRefusedAtOnce(t *testing.T) {
	g := guard(t)
	const clients = 200
	for i := range clients {
		g.login("192.0.2."+strconv.Itoa(i), "/", "user"+strconv.Itoa(i), "guess")
	}
	refused := func() int {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for key, count := range g.codes {
			if strings.HasSuffix(key, " 5031") {
				n += count
			}
		}
		return n
	}
	eventually(t, "what is above the queue is refused", func() bool { return refused() >= clients-1-maxGuesses && g.queued() == clients-1-refused() })
	p := g.engine.passwords
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued > maxGuesses || len(p.clients) > maxGuesses+1 || len(p.flights) > maxGuesses+1 {
		t.Errorf("%d wait, %d clients and %d flights are kept", p.queued, len(p.clients), len(p.flights))
	}
}

func TestGuessingAtOneUserLeavesRoomForOthers(t *testing.T) {
	g := guard(t)
	g.login("192.0.2.100", "/", "carol", "first")
	eventually(t, "a hash is compared", g.comparing)
	for i := range 40 {
		g.login("192.0.2."+strconv.Itoa(i), "/", "carol", strconv.Itoa(i))
	}
	eventually(t, "no more guesses at a user wait", func() bool { return g.queued() == maxUserGuesses })
	user, p := "dave", g.engine.passwords
	for i := 0; p.bucket(user) == p.bucket("carol"); i++ {
		user = "dave" + strconv.Itoa(i)
	}
	g.login("192.0.2.99", "/", user, "secret")
	eventually(t, "another user waits too", func() bool { return g.queued() == maxUserGuesses+1 })
}

func TestAWaitForThePasswordEnds(t *testing.T) {
	g := guard(t)
	g.login("192.0.2.1", "/", "carol", "first")
	eventually(t, "a hash is compared", g.comparing)
	g.login("192.0.2.2", "/soon", "carol", "secret")
	eventually(t, "the request's time holds", func() bool { return g.answers("192.0.2.2 504") == 1 })
	eventually(t, "nobody waits any more", func() bool { return g.queued() == 0 })
}

func TestTheSamePasswordIsComparedOnce(t *testing.T) {
	g := guard(t)
	for range 20 {
		g.login("192.0.2.1", "/", "carol", "secret")
	}
	together := func() int {
		p := g.engine.passwords
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, flight := range p.flights {
			return flight.together
		}
		return 0
	}
	eventually(t, "all wait together", func() bool { return together() == 20 })
	g.step <- struct{}{}
	eventually(t, "one hash lets all in", func() bool { return g.answers("192.0.2.1 200") == 20 })
}

func TestClientsTakeTurns(t *testing.T) {
	p := newPasswords(nil)
	p.running = true // the test takes the next guess itself
	for i, client := range strings.Split("aaaabbc", "") {
		attempt := attempt{user: strconv.Itoa(i), client: netip.MustParseAddr("fd00::" + client), users: map[string][][]byte{}}
		if g, refused := p.enqueue(attempt, p.fingerprint(&attempt)); g == nil {
			t.Fatal(refused)
		}
	}
	var order []string
	for g := p.next(); g != nil; g = p.next() {
		order = append(order, strings.TrimPrefix(g.client.String(), "fd00::"))
		p.ended(g)
	}
	want(t, "turns", strings.Join(order, ""), "abcabaa")
	want(t, "clients that are left", len(p.clients), 0)
}

// Eight addresses fill the queue with their shares. A new client takes the place of the
// newest guess of one of them. So does the next client, until all have the same number.
func TestAFullQueueMakesRoomForANewClient(t *testing.T) {
	enqueue := func(p *passwords, client, user string) (*guess, verdict) {
		a := attempt{user: user, password: client + user, client: netip.MustParseAddr(client), users: map[string][][]byte{}}
		return p.enqueue(a, p.fingerprint(&a))
	}
	tests := map[string]struct {
		clients, each int
		oneUser       bool
		let           int // how many new clients are accepted
	}{
		"the queue is full":                  {clients: 8, each: 8, let: 56},
		"the guesses at a user are too many": {clients: 2, each: 8, oneUser: true, let: 14},
		"each has one at the user":           {clients: 16, each: 1, oneUser: true, let: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPasswords(nil)
			p.running = true // no goroutine compares
			user := func(i int) string {
				if test.oneUser {
					return "carol"
				}
				return strconv.Itoa(i)
			}
			var all []*guess
			for i := range test.clients * test.each {
				a := attempt{user: user(i), password: strconv.Itoa(i), client: netip.AddrFrom4([4]byte{192, 0, 2, byte(i % test.clients)}), users: map[string][][]byte{}}
				g, refused := p.enqueue(a, p.fingerprint(&a))
				if g == nil {
					t.Fatalf("guess %d: %v", i, verdicts[refused])
				}
				all = append(all, g)
			}
			let := 0
			for i := range 200 {
				g, refused := enqueue(p, "198.51.100."+strconv.Itoa(i), user(i))
				if g == nil {
					want(t, "why", verdicts[refused], "busy")
					break
				}
				let++
			}
			dropped := 0
			for _, g := range all {
				if g.dropped {
					dropped++
					want(t, "what becomes of it", verdicts[p.await(t.Context(), g, time.Time{})], "busy")
				}
			}
			if dropped != let || let != test.let || p.queued != len(all) {
				t.Errorf("%d are let in, want %d; %d gave way, %d of %d wait", let, test.let, dropped, p.queued, len(all))
			}
		})
	}
}

// A guess for which two clients wait is not dropped. The one before it is dropped.
func TestAGuessOfTwoClientsDoesNotGiveWay(t *testing.T) {
	p := newPasswords(nil)
	p.running = true // no goroutine compares
	enqueue := func(client, password string) *guess {
		a := attempt{user: "carol", password: password, client: netip.MustParseAddr(client), users: map[string][][]byte{}}
		g, _ := p.enqueue(a, p.fingerprint(&a))
		return g
	}
	var first []*guess
	for i := range maxClientGuesses {
		first = append(first, enqueue("192.0.2.1", strconv.Itoa(i)))
	}
	for i := range maxUserGuesses - maxClientGuesses {
		enqueue("192.0.2.2", "other"+strconv.Itoa(i))
	}
	if joined := enqueue("192.0.2.3", strconv.Itoa(maxClientGuesses-1)); joined != first[maxClientGuesses-1] {
		t.Fatal("the same password is compared twice")
	}
	for i := range 20 {
		enqueue("198.51.100."+strconv.Itoa(i), "new")
		enqueue("198.51.100."+strconv.Itoa(i), "newer"+strconv.Itoa(i))
	}
	if first[maxClientGuesses-1].dropped || !first[maxClientGuesses-2].dropped {
		t.Error("what two clients wait for gave way")
	}
}

func BenchmarkRememberedPassword(b *testing.B) {
	p := newPasswords(nil)
	a := attempt{user: "carol", password: "secret", users: map[string][][]byte{"carol": {[]byte("hash")}}, deadline: time.Time{}}
	p.remember(p.fingerprint(&a))
	for b.Loop() {
		if p.check(b.Context(), a) != passwordRight {
			b.Fatal("not remembered")
		}
	}
}

func TestAPasswordThatPanicsIsWrong(t *testing.T) {
	doing := make(chan string, 1)
	report := panics.Reporter(func(what string, _ any, _ []byte) { doing <- what })
	p := newPasswords(clock.RealClock{})
	p.panics, p.compare = report, func(_, password []byte) error {
		if string(password) == "panics" {
			panic("a defect")
		}
		return nil
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	guess := func(password string) verdict {
		return p.check(t.Context(), attempt{user: "carol", password: password, client: netip.MustParseAddr("fd00::1"), users: map[string][][]byte{"carol": {hash}}})
	}
	want(t, "the one that panics", guess("panics"), passwordWrong)
	want(t, "told", <-doing, "compare a password")
	want(t, "the next", guess("right"), passwordRight)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(30 * time.Second); !is(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("never: %s", what)
		}
	}
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
