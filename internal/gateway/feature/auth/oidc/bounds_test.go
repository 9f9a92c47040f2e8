package oidc

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/dialguard"
)

// answering is a provider that gives the same answer to each request for tokens, without a network.
type answering struct {
	status int
	text   string
	media  string
}

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.media}}, Body: io.NopCloser(strings.NewReader(a.text)),
	}, nil
}

// together answers when as many requests as may be under way are there.
type together struct {
	answering

	asked atomic.Int64
	all   chan struct{}
}

func (a *together) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.asked.Add(1) == maxRenewing {
		close(a.all)
	}
	<-a.all
	return a.answering.RoundTrip(r)
}

var anyProvider = fixed{&Provider{TokenURL: "http://issuer.test"}}

func tokens(refresh string, seconds int) string {
	return fmt.Sprintf(`{"access_token": "x", "token_type": "Bearer", "expires_in": %d, "refresh_token": "%s"}`, seconds, refresh)
}

// holding is what a share remembers.
type holding struct{ Results, Bytes, Sessions, Texts int }

func (s *share) holding() (h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Results, h.Bytes = len(s.renewed), s.bytes
	for _, known := range s.renewed {
		if known.session != nil {
			h.Sessions++
		}
		if known.sealed != "" {
			h.Texts++
		}
	}
	return h
}

func expiredSession(refresh string) *Session {
	return &Session{IDToken: "a.e30.c", RefreshToken: refresh, Expires: now.Unix(), Ends: now.Unix() + 7200}
}

func TestTokensThatCookiesCannotCarryAreNotRemembered(t *testing.T) {
	for name, test := range map[string]struct {
		refresh string
		kind    Kind
	}{
		"what cookies carry":                    {strings.Repeat("x", 12_000), OK},
		"more than they carry":                  {strings.Repeat("x", maxTokens+1), TooLarge},
		"more than they carry, once written":    {strings.Repeat("<", 6_000), TooLarge},
		"as much as is read":                    {strings.Repeat("<", 65_000), TooLarge},
		"more than is read":                     {strings.Repeat("<", 70_000), Unavailable},
		"more than is read, of what is no text": {strings.Repeat("<", 1<<20), Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var counted, each [Kinds]int
				var mu sync.Mutex
				traffic := &Traffic{Renewed: func(kind Kind) {
					mu.Lock()
					counted[kind]++
					mu.Unlock()
				}}
				c := testClient(t, nil)
				c.share = traffic.share(c.key())
				client := &http.Client{Transport: bounded{&together{
					answering: answering{200, tokens(test.refresh, 600), "application/json"}, all: make(chan struct{}),
				}}}
				var wait sync.WaitGroup
				for range 2 { // the second time, what is remembered tells
					for i := range maxRenewing {
						wait.Go(func() {
							s, cookies, err := c.Fresh(t.Context(), anyProvider, client, browser(nil), expiredSession(fmt.Sprint(i)))
							if KindOf(err) != test.kind || (s != nil) != (err == nil) || (len(cookies) > 0) != (err == nil) {
								t.Errorf("session %d: %v, %d cookies", i, err, len(cookies))
							}
						})
					}
					wait.Wait()
				}
				got, wanted := c.share.holding(), holding{Results: maxRenewing}
				if test.kind == OK {
					wanted = holding{maxRenewing, got.Bytes, maxRenewing, maxRenewing}
				}
				if got.Bytes > maxRememberedBytes || test.kind == OK && got.Bytes < maxRenewing*len(test.refresh) {
					t.Errorf("%d bytes are remembered", got.Bytes)
				}
				if diff := cmp.Diff(wanted, got); diff != "" {
					t.Errorf("remembered (-want +got):\n%s", diff)
				}
				each[test.kind] = maxRenewing
				if diff := cmp.Diff(each, counted); diff != "" {
					t.Errorf("counted (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestResultsOfRenewalsAreDroppedInTime(t *testing.T) {
	tooLong, one := strings.Repeat("x", maxAnswer), holding{Results: 1, Sessions: 1, Texts: 1}
	for name, test := range map[string]struct {
		answer answering
		holds  time.Duration
		result holding
	}{
		"new tokens":                  {answering{200, tokens("next", 600), "application/json"}, remembered, one},
		"new tokens, soon over":       {answering{200, tokens("next", 10), "application/json"}, 10 * time.Second, one},
		"too large":                   {answering{200, tokens(strings.Repeat("x", 20_000), 600), "application/json"}, remembered, holding{Results: 1}},
		"refused":                     {answering{400, `{"error": "invalid_grant"}`, "application/json"}, remembered, holding{Results: 1}},
		"no answer that counts":       {answering{503, "", "application/json"}, time.Second, holding{Results: 1}},
		"not the client's secret":     {answering{401, "", "application/json"}, time.Second, holding{Results: 1}},
		"more than is read":           {answering{200, tokens(tooLong, 600), "application/json"}, time.Second, holding{Results: 1}},
		"new tokens, over much later": {answering{200, tokens("next", 7200), "application/json"}, remembered, one},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := testClient(t, nil)
				client := &http.Client{Transport: bounded{test.answer}}
				_, _, _ = c.Fresh(t.Context(), anyProvider, client, browser(nil), expiredSession("r"))
				<-time.After(test.holds - time.Nanosecond) // of the bubble: it takes no time
				synctest.Wait()
				got := c.share.holding()
				if (got.Bytes > 0) != (got.Sessions > 0) {
					t.Errorf("%d bytes are counted", got.Bytes)
				}
				got.Bytes = 0
				if diff := cmp.Diff(test.result, got); diff != "" {
					t.Errorf("while it holds (-want +got):\n%s", diff)
				}
				<-time.After(time.Nanosecond)
				synctest.Wait()
				if diff := cmp.Diff(holding{}, c.share.holding()); diff != "" {
					t.Errorf("afterwards (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A result that made room is asked for again. The time of the one before must not end the next one.
func TestAResultHasATimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testClient(t, nil)
		renew := func() {
			client := &http.Client{Transport: answering{200, tokens("next", 600), "application/json"}}
			if _, _, err := c.Fresh(t.Context(), anyProvider, client, browser(nil), expiredSession("r")); err != nil {
				t.Fatal(err)
			}
		}
		renew()
		<-time.After(remembered / 2)
		c.share.mu.Lock()
		c.share.drop(c.share.oldest())
		c.share.mu.Unlock()
		renew()
		<-time.After(remembered / 2)
		synctest.Wait()
		if got := c.share.holding(); got.Results != 1 {
			t.Errorf("got %+v", got)
		}
		<-time.After(remembered / 2)
		synctest.Wait()
		if diff := cmp.Diff(holding{}, c.share.holding()); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
	})
}

func TestAClientThatGoesIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traffic := &Traffic{}
		stays, goes := testClient(t, nil), testClient(t, func(c *Config) { c.Scope = "two" })
		for _, c := range []*Client{stays, goes} {
			c.share = traffic.share(c.key())
			client := &http.Client{Transport: answering{200, tokens("next", 600), "application/json"}}
			if _, _, err := c.Fresh(t.Context(), anyProvider, client, browser(nil), expiredSession("r")); err != nil {
				t.Fatal(err)
			}
		}
		traffic.Keep([]*Client{stays})
		if got := stays.share.holding(); got.Results != 1 {
			t.Errorf("of the one that stays: %+v", got)
		}
		if diff := cmp.Diff(holding{}, goes.share.holding()); diff != "" {
			t.Errorf("of the one that goes (-want +got):\n%s", diff)
		}
	})
}

func TestAnswersToRequestsForTokensAreReadInBounds(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		packed bool
		whole  bool
	}{
		"the largest":         {maxAnswer, false, true},
		"a larger one":        {maxAnswer + 1, false, false},
		"a gigantic one":      {8 << 20, false, false},
		"the largest, packed": {maxAnswer, true, true},
		"a larger one, which is small while it is packed": {maxAnswer + 1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				out := io.Writer(w)
				if test.packed {
					w.Header().Set("Content-Encoding", "gzip")
					packed := gzip.NewWriter(w)
					defer packed.Close()
					out = packed
				}
				_, _ = io.WriteString(out, strings.Repeat("x", test.size))
			}))
			defer server.Close()
			client := NewHTTPClient(&dialguard.Guard{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
			defer client.CloseIdleConnections()
			response, err := client.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			_, bounded := errors.AsType[*http.MaxBytesError](err)
			if len(text) != min(test.size, maxAnswer) || bounded == test.whole || err == nil != test.whole {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}

// The tokens of an answer that is a form are parts of it. Who keeps a token as it came keeps the whole.
func TestAnAnswerIsNotKeptWithItsTokens(t *testing.T) {
	inUse := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	c := testClient(t, nil)
	padding, before := strings.Repeat("x", 60<<10), inUse()
	for i := range 500 {
		client := &http.Client{Transport: answering{200, "access_token=x&expires_in=600&refresh_token=next&padding=" + padding, "text/plain"}}
		if _, _, err := c.Fresh(t.Context(), anyProvider, client, browser(nil), expiredSession(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if grown := inUse() - before; grown > 5<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	runtime.KeepAlive(c)
}
