package published

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// issuer publishes keys.
type issuer struct {
	*httptest.Server

	fetches atomic.Int64
	answer  atomic.Pointer[http.HandlerFunc]
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.set(publish(keySet(t)))
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.fetches.Add(1)
		(*i.answer.Load())(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) set(answer http.HandlerFunc) { i.answer.Store(&answer) }

func publish(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func broken(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "canary", http.StatusInternalServerError)
}

// keySet is a set with a new key.
func keySet(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public()}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fetchKeys fetches a key set, which is the document of these tests.
func fetchKeys(ctx context.Context, client *http.Client, address string) (*token.Keys, time.Duration, error) {
	text, fresh, err := Get(ctx, client, Wanted{Address: address, What: "the keys", Accept: "application/json", MaxBytes: token.MaxKeySet + 1})
	if err != nil {
		return nil, 0, err
	}
	keys, err := token.ParseKeys(text)
	return keys, fresh, err
}

// loopback is where servers of tests are.
var loopback = &dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

// run runs a registry until the test ends.
func run(t *testing.T) (*Registry[token.Keys], *testingclock.FakeClock) {
	return runWith(t, Options[token.Keys]{})
}

func runWith(t *testing.T, options Options[token.Keys]) (*Registry[token.Keys], *testingclock.FakeClock) {
	if options.Fetch == nil {
		options.Fetch = fetchKeys
	}
	options.Guard = loopback
	registry, clock := NewRegistry(options), testingclock.NewFakeClock(time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { registry.Run(ctx, clock) })
	t.Cleanup(func() {
		cancel()
		wait.Wait()
	})
	return registry, clock
}

func failureOf(s *Source[token.Keys]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("did not come true in 10 s: %s", what)
		case <-tick.C:
		}
	}
}

// resting waits until the sources sleep between two attempts. Then the test may move the
// clock.
func resting(t *testing.T, clock *testingclock.FakeClock, sources int) {
	t.Helper()
	eventually(t, "the sources rest", func() bool { return clock.Waiters() == 2*sources })
}

func TestKeysAreFetchedOnceAndAgainWhenTheyAreOld(t *testing.T) {
	issuer := newIssuer(t)
	registry, clock := run(t)
	source := registry.Source(issuer.URL)
	first := source.Latest(t.Context())
	if first == nil || registry.Source(issuer.URL) != source {
		t.Fatal("no keys, or not the same source")
	}
	for range 100 {
		source.Latest(t.Context())
	}
	if n := issuer.fetches.Load(); n != 1 {
		t.Fatalf("fetched %d times", n)
	}
	resting(t, clock, 1)
	clock.Step(defaultFresh)
	eventually(t, "they are fetched again", func() bool { return source.Latest(t.Context()) != first })
}

func TestUnknownKeysAreLookedForOnceInAWhile(t *testing.T) {
	issuer := newIssuer(t)
	registry, clock := run(t)
	source := registry.Source(issuer.URL)
	first := source.Latest(t.Context())
	issuer.set(publish(keySet(t))) // the issuer has a new key
	resting(t, clock, 1)
	for range 100 {
		if source.Newer(t.Context(), first) != nil {
			t.Fatal("newer keys before the time")
		}
	}
	clock.Step(askedEvery)
	eventually(t, "somebody may ask again", func() bool {
		source.mu.Lock()
		defer source.mu.Unlock()
		return source.rested
	})
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			if newer := source.Newer(t.Context(), first); newer == nil || newer == first {
				t.Error("no newer keys")
			}
		})
	}
	wait.Wait()
	if n := issuer.fetches.Load(); n != 2 {
		t.Errorf("fetched %d times", n)
	}
}

func TestAnIssuerThatIsAwayAtFirstIsTriedAgain(t *testing.T) {
	issuer := newIssuer(t)
	good := issuer.answer.Load()
	issuer.set(broken)
	var changes atomic.Int64
	registry, clock := runWith(t, Options[token.Keys]{MissingChanged: func() { changes.Add(1) }})
	source := registry.Source(issuer.URL)
	if source.Latest(t.Context()) != nil {
		t.Fatal("keys out of nothing")
	}
	if err := failureOf(source); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("failure: %v", err)
	}
	eventually(t, "it is said that there are none", func() bool { return source.Missing() && changes.Load() == 1 })
	before := issuer.fetches.Load()
	for range 100 {
		source.Latest(t.Context()) // nobody waits, and no fetch is started too early
	}
	if n := issuer.fetches.Load(); n != before {
		t.Errorf("fetched %d times more", n-before)
	}
	for i := range 3 {
		resting(t, clock, 1)
		clock.Step(firstRetry << i * 5 / 4)
		eventually(t, "it is tried again", func() bool { return issuer.fetches.Load() > before })
		before = issuer.fetches.Load()
	}
	issuer.answer.Store(good)
	resting(t, clock, 1)
	clock.Step(lastRetry)
	eventually(t, "there are keys", func() bool { return source.Latest(t.Context()) != nil && !source.Missing() && changes.Load() == 2 })
}

func TestTheLastGoodKeysStay(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"error":       broken,
		"no key set":  publish("<html>"),
		"empty set":   publish(`{"keys": []}`),
		"cut":         func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000") },
		"endless set": publish(`{"keys": [` + strings.Repeat(" ", token.MaxKeySet)),
		"silence":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"redirects":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			issuer := newIssuer(t)
			registry, clock := run(t)
			registry.client.Timeout = time.Second
			source := registry.Source(issuer.URL)
			first := source.Latest(t.Context())
			issuer.set(answer)
			for range 2 {
				before := issuer.fetches.Load()
				resting(t, clock, 1)
				clock.Step(maxFresh)
				eventually(t, "it failed", func() bool { return issuer.fetches.Load() > before && failureOf(source) != nil })
			}
			if source.Latest(t.Context()) != first {
				t.Error("the last good keys are gone")
			}
		})
	}
}

func TestASourceThatNobodyUsesIsFetchedNoMore(t *testing.T) {
	issuer, other := newIssuer(t), newIssuer(t)
	registry, clock := run(t)
	source, kept := registry.Source(issuer.URL), registry.Source(other.URL)
	keys := source.Latest(t.Context())
	kept.Latest(t.Context())
	resting(t, clock, 2)
	registry.Keep(func(address string) bool { return address == other.URL })
	resting(t, clock, 1)
	clock.Step(defaultFresh)
	eventually(t, "the other is fetched", func() bool { return other.fetches.Load() == 2 })
	if n := issuer.fetches.Load(); n != 1 || source.Latest(t.Context()) != keys {
		t.Errorf("fetched %d times, or the keys are gone", n)
	}
	if source.Newer(t.Context(), keys) != nil { // a caller that still holds a dropped source does not wait
		t.Error("newer keys of a source that is dropped")
	}
}

func TestWhoWaitsIsNotForgotten(t *testing.T) {
	registry := NewRegistry(Options[token.Keys]{Fetch: fetchKeys, Guard: loopback})
	ended, end := context.WithCancel(t.Context())
	end()
	if registry.Source("http://192.0.2.1/").Latest(ended) != nil { // the caller goes away
		t.Error("keys out of nothing")
	}
	registry.Run(ended, testingclock.NewFakeClock(time.Now()))
	if registry.Source("http://192.0.2.1/").Latest(t.Context()) != nil { // the registry fetches no more
		t.Error("keys out of nothing")
	}
}

func TestHowLongKeysAreFresh(t *testing.T) {
	for header, wanted := range map[string]time.Duration{
		"": defaultFresh, "public": defaultFresh, "max-age=600": 10 * time.Minute, "public, Max-Age=600, must-revalidate": 10 * time.Minute,
		`max-age="600"`: 10 * time.Minute, "max-age=0": minFresh, "no-store": minFresh, "max-age=31536000": maxFresh, "max-age=-1": minFresh,
		"max-age=x": defaultFresh, "max-age": defaultFresh, "s-maxage=600": defaultFresh, "max-age=99999999999999": defaultFresh,
	} {
		if got := freshFor(header); got != wanted {
			t.Errorf("%q: got %v, want %v", header, got, wanted)
		}
	}
}

func TestNoRedirectGivesTLSUp(t *testing.T) {
	from := func(address string) *http.Request {
		parsed, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{URL: parsed}
	}
	for next, good := range map[string]bool{"https://b.example.com/": true, "http://b.example.com/": false} {
		if err := checkRedirect(from(next), []*http.Request{from("https://a.example.com/")}); (err == nil) != good {
			t.Errorf("%s: got %v", next, err)
		}
	}
}

// What a provider publishes comes from outside. A panic of reading it is a failure like any other.
func TestAPanicIsAFailureThatIsTriedAgain(t *testing.T) {
	issuer := newIssuer(t)
	issuer.set(publish(keySet(t)))
	var defect atomic.Bool
	defect.Store(true)
	doing := make(chan string, 100)
	registry, clock := runWith(t, Options[token.Keys]{
		Fetch: func(ctx context.Context, client *http.Client, address string) (*token.Keys, time.Duration, error) {
			if defect.Load() {
				panic("a defect")
			}
			return fetchKeys(ctx, client, address)
		},
		Panics: func(what string, _ any, _ []byte) { doing <- what },
	})
	source := registry.Source(issuer.URL)
	if got := <-doing; got != "fetch what a provider publishes" {
		t.Errorf("told of %q", got)
	}
	resting(t, clock, 1)
	if err := failureOf(source); !errors.Is(err, panics.ErrPanicked) || !source.Missing() {
		t.Errorf("the failure is %v", err)
	}
	defect.Store(false)
	clock.Step(2 * firstRetry)
	eventually(t, "the keys are there", func() bool { return source.Last() != nil })
}
