package upstream

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// checked is a Service with health checks. The test controls the time.
type checked struct {
	*Service

	t        *testing.T
	registry *Registry
	clock    *testingclock.FakeClock
	results  chan CheckResult
	stop     func() // stops the registry
}

// checking runs a registry with a Service "app:80", which has endpoints and a check.
func checking(t *testing.T, options Options, check Check, addresses ...string) *checked {
	t.Helper()
	c := &checked{
		t: t, results: make(chan CheckResult, 1000),
		// The time is in the past, so that deadlines computed from it never bound real I/O.
		clock: testingclock.NewFakeClock(time.Now().Add(-30 * 24 * time.Hour)),
	}
	options.Clock, options.Checked = c.clock, func(result CheckResult) { c.results <- result }
	c.registry = NewRegistry(options)
	c.Service = c.registry.Service("app:80", nil)
	c.SetCheck(check)
	c.Set(addresses)
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { c.registry.Run(ctx, c.clock) })
	c.stop = func() {
		cancel()
		wait.Wait()
	}
	t.Cleanup(func() {
		c.stop()
		c.registry.Keep(func(string) bool { return false })
	})
	return c
}

// next moves the time until a check has a result.
func (c *checked) next() CheckResult {
	c.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case result := <-c.results:
			return result
		case <-tick.C:
			c.clock.Step(100 * time.Millisecond)
		case <-deadline:
			c.t.Fatal("no check for 10 s")
		}
	}
}

// unhealthy returns the addresses of the unhealthy endpoints.
func (s *Service) unhealthy() []string {
	s.set.Lock()
	defer s.set.Unlock()
	var out []string
	for _, e := range *s.endpoints.Load() {
		if e.unhealthy {
			out = append(out, e.address)
		}
	}
	return out
}

// until moves the time until exactly these addresses are unhealthy.
func (c *checked) until(unhealthy ...string) {
	c.t.Helper()
	slices.Sort(unhealthy)
	for range 200 {
		if slices.Equal(c.unhealthy(), unhealthy) {
			return
		}
		c.next()
	}
	c.t.Fatalf("unhealthy are %v, want %v", c.unhealthy(), unhealthy)
}

// everySecond is a check that reacts to each result.
func everySecond() Check {
	return Check{Path: "/healthz", Period: time.Second, Timeout: 10 * time.Second, Healthy: 1, Unhealthy: 1}
}

// patient answers checks with a status that the test sets. It counts requests.
type patient struct {
	*backend

	status   atomic.Int64
	requests atomic.Int64 // without checks
}

func newPatient(t *testing.T, status int64) *patient {
	s := &patient{}
	s.status.Store(status)
	s.backend = listen(t, func(p *peer, _ int) {
		for {
			head := p.head()
			if head == "" {
				return
			}
			if target := strings.Fields(head)[1]; target != "/healthz" {
				s.requests.Add(1)
				if target == "/busy" {
					p.send(unavailable)
				} else {
					p.send(okResponse)
				}
				continue
			}
			p.send("HTTP/1.1 " + strconv.FormatInt(s.status.Load(), 10) + " X\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	return s
}

func TestThresholdsCountChecksInARow(t *testing.T) {
	for name, test := range map[string]struct {
		healthy, unhealthy int
		statuses           string // of the checks, by their first digit
		want               string // after each check: healthy or unhealthy
	}{
		"well":                       {1, 3, "222222", "hhhhhh"},
		"a redirect is an answer":    {1, 1, "333", "hhh"},
		"three in a row":             {1, 3, "55555", "hhuuu"},
		"refusals count too":         {1, 3, "444", "hhu"},
		"not in a row":               {1, 3, "552552555", "hhhhhhhhu"},
		"one success brings it back": {1, 1, "5255", "uhuu"},
		"two in a row bring it back": {2, 1, "5252522", "uuuuuuh"},
		"and it may fail again":      {2, 2, "552255", "huuhhu"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(chan string, 1) // the next check waits for the test
			b := listen(t, func(p *peer, _ int) {
				for p.head() != "" {
					p.send("HTTP/1.1 " + <-answers + "00 X\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			t.Cleanup(func() { close(answers) })
			check := everySecond()
			check.Healthy, check.Unhealthy = test.healthy, test.unhealthy
			c := checking(t, Options{}, check, b.address())
			got, before := "", "h"
			for i, digit := range strings.Split(test.statuses, "") {
				answers <- digit
				result := c.next()
				state := "h"
				if len(c.unhealthy()) > 0 {
					state = "u"
				}
				want := CheckResult{Service: "app:80", Endpoint: b.address(), Err: result.Err, Changed: state != before}
				if result != want || (result.Err == nil) != (digit < "4") {
					t.Errorf("check %d: got %+v", i, result)
				}
				got += state
				before = state
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if e := (*c.endpoints.Load())[0]; e.failures.Load() != 0 || len(c.Ejected()) != 0 {
				t.Error("checks that fail count as requests that fail")
			}
		})
	}
}

func TestUnhealthyEndpointsGetNoRequests(t *testing.T) {
	all := []*patient{newPatient(t, 200), newPatient(t, 200), newPatient(t, 200)}
	c := checking(t, Options{}, everySecond(), all[0].address(), all[1].address(), all[2].address())
	// reach sends requests until the expected endpoints have got one. A check in flight
	// counts as load, so it may take some time.
	reach := func(what string, gets [3]bool) {
		t.Helper()
		before := [3]int64{all[0].requests.Load(), all[1].requests.Load(), all[2].requests.Load()}
		eventually(t, what, func() bool {
			for range 60 {
				if status, _ := fetch(t, c.Service, get()); status != http.StatusOK {
					t.Fatalf("got %d", status)
				}
			}
			reached := true
			for i, b := range all {
				reached = reached && (!gets[i] || b.requests.Load() > before[i])
			}
			return reached
		})
		for i, b := range all {
			if !gets[i] && b.requests.Load() > before[i] {
				t.Errorf("%s: requests went to endpoint %d, want %v", what, i, gets)
			}
		}
	}
	for _, step := range []struct {
		what string
		well [3]bool
		gets [3]bool
	}{
		{"at first", [3]bool{true, true, true}, [3]bool{true, true, true}},
		{"one is unhealthy", [3]bool{false, true, true}, [3]bool{false, true, true}},
		{"two are", [3]bool{false, true, false}, [3]bool{false, true, false}},
		{"all are, so that nothing is gained by leaving them out", [3]bool{}, [3]bool{true, true, true}},
		{"one is back", [3]bool{false, false, true}, [3]bool{false, false, true}},
		{"all are back", [3]bool{true, true, true}, [3]bool{true, true, true}},
	} {
		var unhealthy []string
		for i, b := range all {
			if step.well[i] {
				b.status.Store(200)
				continue
			}
			b.status.Store(503)
			unhealthy = append(unhealthy, b.address())
		}
		c.until(unhealthy...)
		reach(step.what, step.gets)
	}
}

func TestRetriesGoToNoUnhealthyEndpoint(t *testing.T) {
	sick, well := newPatient(t, 503), newPatient(t, 200)
	c := checking(t, Options{Backoff: Backoff{Base: 1, Max: 1}}, everySecond(), sick.address(), well.address())
	c.until(sick.address())
	for range 20 {
		req := get()
		req.Target = "/busy"
		req.Retry = Retry{Attempts: 3, On: model.OnStatus503}
		fetch(t, c.Service, req)
	}
	if sick.requests.Load() != 0 || well.requests.Load() != 80 {
		t.Errorf("%d requests went to the unhealthy endpoint, %d to the other", sick.requests.Load(), well.requests.Load())
	}
}

// Failed requests must not eject the only healthy endpoint.
func TestTheLastHealthyEndpointIsNotEjected(t *testing.T) {
	sick, well := newPatient(t, 503), newPatient(t, 200)
	c := checking(t, Options{Ejection: Ejection{Failures: 1}}, everySecond(), sick.address(), well.address())
	c.until(sick.address())
	for _, e := range *c.endpoints.Load() {
		c.eject(e)
	}
	if got := c.Ejected(); len(got) != 0 {
		t.Errorf("ejected %v", got)
	}
}

func TestWhatACheckAsks(t *testing.T) {
	seen := make(chan *http.Request, 100)
	record := func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, strings.Repeat("x", 2*maxCheckBody))
	}
	address := http2Backend(t, record)
	for name, test := range map[string]struct {
		protocol Protocol
		address  string
		host     string
		want     string
	}{
		"HTTP/1.1":           {HTTP1, http1Backend(t, record), "", "HTTP/1.1 GET /healthz"},
		"HTTP/2":             {HTTP2, address, "", "HTTP/2.0 GET /healthz"},
		"with a Host":        {HTTP1, http1Backend(t, record), "app.example.com", "HTTP/1.1 GET /healthz"},
		"HTTP/2 with a Host": {HTTP2, address, "app.example.com", "HTTP/2.0 GET /healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			check := everySecond()
			check.Protocol, check.Host = test.protocol, test.host
			c := checking(t, Options{}, check, test.address)
			if result := c.next(); result.Err != nil {
				t.Fatal(result.Err)
			}
			r := <-seen
			if got := r.Proto + " " + r.Method + " " + r.URL.Path; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if want := cmp.Or(test.host, test.address); r.Host != want {
				t.Errorf("got Host %s, want %s", r.Host, want)
			}
			if got := r.UserAgent(); got != "slipway-gateway health check" {
				t.Errorf("got User-Agent %q", got)
			}
		})
	}
}

func http1Backend(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestACheckThatFailsSaysWhy(t *testing.T) {
	hang := func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	silent := listen(t, func(p *peer, _ int) { p.untilClosed() }).address()
	refused := refusing(t)
	for name, test := range map[string]struct {
		options Options
		address string
		want    string
	}{
		"status":            {Options{}, answering(t, unavailable).address(), "the answer is 503"},
		"no connection":     {Options{}, refused, "refused"},
		"nobody there":      {Options{Dial: hang}, "192.0.2.1:80", "no answer in 20ms"},
		"nobody answers":    {Options{}, silent, "no answer in 20ms"},
		"no HTTP":           {Options{}, answering(t, "nonsense\r\n\r\n").address(), "malformed"},
		"a connection ends": {Options{}, listen(t, func(p *peer, _ int) { p.head() }).address(), "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			check := everySecond()
			if strings.HasPrefix(test.want, "no answer") {
				check.Timeout = 20 * time.Millisecond
			}
			c := checking(t, test.options, check, test.address)
			result := c.next()
			if result.Err == nil || !strings.Contains(result.Err.Error(), test.want) || !strings.HasPrefix(result.Err.Error(), test.address) {
				t.Errorf("got %v, want %q", result.Err, test.want)
			}
		})
	}
}

func TestAConnectionThatEndedWhileIdleFailsNoCheck(t *testing.T) {
	b, seen := closingIdle(t)
	c := checking(t, Options{}, everySecond(), b.address())
	for range 6 {
		if result := c.next(); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	if seen.Load() < 6 {
		t.Errorf("the backend saw %d requests", seen.Load())
	}
}

func TestChecksUseTheirConnectionAgain(t *testing.T) {
	b := newPatient(t, 200)
	c := checking(t, Options{}, everySecond(), b.address())
	for range 10 {
		c.next()
	}
	fetch(t, c.Service, get())
	if n := b.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// The health of an endpoint survives a new table and a changed check.
func TestHealthIsForgottenWithTheEndpointOrTheCheck(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *checked, addresses []string)
		stays  bool
	}{
		"the same again": {func(c *checked, addresses []string) {
			c.SetCheck(everySecond())
			c.Set(addresses)
		}, true},
		"another endpoint comes": {func(c *checked, addresses []string) { c.Set(append(addresses, "192.0.2.1:80")) }, true},
		"another check": {func(c *checked, _ []string) {
			check := everySecond()
			check.Period = time.Hour
			c.SetCheck(check)
		}, true},
		"no check": {func(c *checked, _ []string) { c.SetCheck(Check{}) }, false},
		"the endpoint goes and another comes at its address": {func(c *checked, addresses []string) {
			c.Set(addresses[1:])
			c.Set(addresses)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			sick, well := newPatient(t, 503), newPatient(t, 200)
			c := checking(t, Options{}, everySecond(), sick.address(), well.address())
			c.until(sick.address())
			c.stop() // no result may come in between
			test.change(c, []string{sick.address(), well.address()})
			if got := slices.Equal(c.unhealthy(), []string{sick.address()}); got != test.stays {
				t.Errorf("unhealthy are %v", c.unhealthy())
			}
			for range 20 {
				if e := c.pick(nil); test.stays && e.address == sick.address() {
					t.Fatal("the unhealthy endpoint is picked")
				}
			}
		})
	}
}

func TestAChangedCheckIsTheNext(t *testing.T) {
	paths := make(chan string, 1000)
	b := listen(t, func(p *peer, _ int) {
		for {
			head := p.head()
			if head == "" {
				return
			}
			paths <- strings.Fields(head)[1]
			p.send(okResponse)
		}
	})
	c := checking(t, Options{}, everySecond(), b.address())
	c.next()
	check := everySecond()
	check.Path = "/ready"
	c.SetCheck(check)
	deadline := time.After(10 * time.Second)
	for {
		select {
		case path := <-paths:
			if path == "/ready" {
				return
			}
		case <-deadline:
			t.Fatal("the new path is not asked for")
		default:
			c.next()
		}
	}
}

func TestAnEndpointThatComesIsChecked(t *testing.T) {
	first, second := newPatient(t, 200), newPatient(t, 503)
	c := checking(t, Options{}, everySecond(), first.address())
	c.next()
	c.Set([]string{first.address(), second.address()})
	if got := c.unhealthy(); len(got) != 0 {
		t.Errorf("unhealthy before any check: %v", got)
	}
	c.until(second.address())
}

// A check in flight ends at once when it is stopped, and so does everything that it waits
// for.
func TestChecksEndAtOnce(t *testing.T) {
	for name, end := range map[string]func(c *checked){
		"with the endpoint": func(c *checked) { c.Set(nil) },
		"with the check":    func(c *checked) { c.SetCheck(Check{}) },
		"with the Service":  func(c *checked) { c.registry.Keep(func(string) bool { return false }) },
		"with the gateway":  func(c *checked) { c.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			silent := listen(t, func(p *peer, _ int) {
				p.head()
				asked.Add(1)
				p.untilClosed()
			})
			check := everySecond()
			check.Timeout = time.Hour
			c := checking(t, Options{}, check, silent.address())
			eventually(t, "a check is under way", func() bool {
				c.clock.Step(100 * time.Millisecond)
				return asked.Load() == 1
			})
			end(c)
			eventually(t, "it has ended", func() bool { return silent.open.Load() == 0 })
			if c.clock.Step(time.Hour); len(c.results) != 0 || len(c.unhealthy()) != 0 {
				t.Error("a check that was ended has a result")
			}
		})
	}
}

// pausing is a clock whose timers end at once. It records their durations.
type pausing struct {
	clock.Clock

	pauses chan time.Duration
}

func (p *pausing) NewTimer(d time.Duration) clock.Timer {
	timer := &pausingTimer{pausing: p, c: make(chan time.Time, 1)}
	timer.Reset(d)
	return timer
}

type pausingTimer struct {
	*pausing

	c chan time.Time
}

func (t *pausingTimer) C() <-chan time.Time { return t.c }
func (t *pausingTimer) Stop() bool          { return true }

func (t *pausingTimer) Reset(d time.Duration) bool {
	select {
	case t.pauses <- d:
		t.c <- time.Time{}
	default: // the test has enough values
	}
	return false
}

func TestChecksDoNotFallIntoStep(t *testing.T) {
	const period = time.Minute
	refuse := func(context.Context, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	firsts, others := map[time.Duration]bool{}, map[time.Duration]bool{}
	for range 50 {
		s := NewService(Options{Dial: refuse}, nil)
		s.SetCheck(Check{Path: "/", Period: period, Timeout: time.Second, Healthy: 1, Unhealthy: 1})
		s.Set([]string{"192.0.2.1:80"})
		ticking := &pausing{Clock: clock.RealClock{}, pauses: make(chan time.Duration, 20)}
		var wait sync.WaitGroup
		s.startChecks(t.Context(), ticking, &wait, func(string) *rate.Limiter { return nil })
		eventually(t, "it has been checked 20 times", func() bool { return len(ticking.pauses) == cap(ticking.pauses) })
		s.Set(nil)
		wait.Wait()
		first := <-ticking.pauses
		if firsts[first] = true; first < 0 || first >= period {
			t.Errorf("the first check comes after %v", first)
		}
		close(ticking.pauses)
		for pause := range ticking.pauses {
			if others[pause] = true; pause < period*9/10 || pause > period*11/10 {
				t.Errorf("the next check comes after %v", pause)
			}
		}
	}
	if len(firsts) < 45 || len(others) < 900 {
		t.Errorf("%d of 50 and %d of 950 pauses differ", len(firsts), len(others))
	}
}

// Each endpoint has at most one check in flight, however long the check takes.
func TestChecksAreBounded(t *testing.T) {
	var under, most atomic.Int64
	hang := func(ctx context.Context, _ string) (net.Conn, error) {
		if n := under.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer under.Add(-1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	check := everySecond()
	check.Timeout = 5 * time.Millisecond
	c := checking(t, Options{Dial: hang, DialTimeout: time.Hour}, check, "192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80")
	for range 60 {
		c.Set([]string{"192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80"}) // as each new table does
		c.next()
	}
	if n := most.Load(); n > 3 {
		t.Errorf("%d checks of 3 endpoints at a time", n)
	}
}

// Whatever the order of changes, checks and results: requests go to endpoints that are not
// unhealthy, or to all if none is left.
func TestChecksUnderChangeAndLoad(t *testing.T) {
	backends := []*patient{newPatient(t, 200), newPatient(t, 503), newPatient(t, 200)}
	addresses := []string{backends[0].address(), backends[1].address(), backends[2].address()}
	c := checking(t, Options{}, everySecond(), addresses...)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-c.results:
				default:
				}
				if status, body := fetch(t, c.Service, get()); status != 200 || body != "ok" {
					t.Errorf("got %d %q", status, body)
				}
				c.clock.Step(200 * time.Millisecond)
			}
		})
	}
	for i := range 300 {
		backends[i%3].status.Store(int64(200 + i%2*303))
		check := everySecond()
		check.Unhealthy = 1 + i/50%2
		if i%25 == 0 {
			check = Check{}
		}
		c.SetCheck(check)
		c.Set(append([]string{addresses[i%3]}, addresses[i%2:1+i%2]...))
	}
	close(done)
	wait.Wait()
	c.stop()
	var want []string
	for _, e := range *c.endpoints.Load() {
		if !slices.Contains(c.unhealthy(), e.address) {
			want = append(want, e.address)
		}
	}
	var got []string
	for _, e := range *c.eligible.Load() {
		got = append(got, e.address)
	}
	if len(want) > 0 && !slices.Equal(want, got) || len(want) == 0 && len(got) != c.Endpoints() {
		t.Errorf("requests go to %v, unhealthy are %v", got, c.unhealthy())
	}
}

// The health of endpoints does not depend on the limit on connections.
func TestABoundOnConnectionsFailsNoCheckOverHTTP2(t *testing.T) {
	handler := func(http.ResponseWriter, *http.Request) {}
	check := everySecond()
	check.Protocol = HTTP2
	c := checking(t, Options{}, check, http2Backend(t, handler), http2Backend(t, handler), http2Backend(t, handler))
	c.SetLimits(model.Limits{Connections: 1})
	for range 12 {
		if result := c.next(); result.Err != nil {
			t.Fatalf("the check of %s: %v", result.Endpoint, result.Err)
		}
	}
}
