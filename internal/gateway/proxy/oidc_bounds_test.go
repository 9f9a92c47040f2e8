package proxy

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// waiting makes the provider wait before it answers a request for tokens with 503. The result lets the requests go on.
func (p *provider) waiting() (goOn func()) {
	blocked := make(chan struct{})
	p.set(func() {
		p.answers = func(w http.ResponseWriter, _ *http.Request) {
			<-blocked
			http.Error(w, "canary", http.StatusServiceUnavailable)
		}
	})
	return sync.OnceFunc(func() {
		p.set(func() { p.answers = nil })
		close(blocked)
	})
}

// Whoever opens the address of the callback can have the provider asked. So there is a bound.
func TestTooManyLogins(t *testing.T) {
	p, g, requests, clock := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	received(t, requests)
	session := cookiesOf(alice)
	clock.Step(601 * time.Second)
	var begun []*person
	var backs []string
	for range 33 {
		bob := newPerson(t, g)
		begun, backs = append(begun, bob), append(backs, bob.comeBack("/"))
	}
	p.set(func() { p.asked = 0 })
	goOn := p.waiting()
	defer goOn()
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() { want(t, "status", begun[i].open(backs[i]).StatusCode, http.StatusServiceUnavailable) })
	}
	eventually(t, "32 are asked for", func() (done bool) {
		p.set(func() { done = p.asked == 32 })
		return done
	})
	one := begun[32].open(backs[32])
	want(t, "status of one more", one.StatusCode, http.StatusServiceUnavailable)
	want(t, "when to come again", one.Header.Get("Retry-After"), "1")
	wait.Go(func() {
		response, _ := g.get("/", "Cookie", session, "Accept", "*/*")
		want(t, "status of a renewal", response.StatusCode, http.StatusServiceUnavailable)
	})
	eventually(t, "a renewal has a bound of its own", func() (done bool) {
		p.set(func() { done = p.asked == 33 })
		return done
	})
	goOn()
	wait.Wait()
	want(t, "status when it comes again", begun[32].open(backs[32]).StatusCode, http.StatusFound)
}

func TestABrowserLogsInInManyTabs(t *testing.T) {
	_, g, _, _ := startLogin(t)
	alice := newPerson(t, g)
	var backs []string
	for range 16 {
		backs = append(backs, alice.comeBack("/"))
	}
	for i, back := range backs {
		if code := alice.open(back).StatusCode; code != http.StatusFound {
			t.Errorf("tab %d: %d", i, code)
		}
	}
	bob := newPerson(t, g)
	for range 40 {
		bob.comeBack("/" + strings.Repeat("x", 500))
	}
	want(t, "cookies", strings.Count(cookiesOf(bob), ".l"), 16)
	want(t, "bytes of cookies fit a head", len(cookiesOf(bob)) < 24<<10, true)
	want(t, "status of the last tab", bob.open(bob.comeBack("/")).StatusCode, http.StatusFound)
}

func TestTokensThatAreTooLargeLetNobodyIn(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		code   int
		result string
	}{
		"for cookies":          {13_500, http.StatusInternalServerError, "too_large"},
		"for cookies, by far":  {60_000, http.StatusInternalServerError, "too_large"},
		"for what is read":     {70_000, http.StatusServiceUnavailable, "unavailable"},
		"for what anybody has": {1 << 20, http.StatusServiceUnavailable, "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			backend, requests := recording(t)
			var log lockedbuffer.Buffer
			registry, clock := prometheus.NewPedanticRegistry(), testingclock.NewFakeClock(time.Now())
			g := startTable(t, Options{Clock: clock, AccessLog: &log, Metrics: registry}, compile(t, p.route(), p.secrets(), backend))
			alice, bob := newPerson(t, g), newPerson(t, g)
			alice.open("/")
			received(t, requests)
			p.set(func() { p.more = strings.Repeat("x", test.size) })
			clock.Step(601 * time.Second)
			want(t, "status of a renewal", alice.open("/", "Accept", "*/*").StatusCode, test.code)
			want(t, "status of a log-in", bob.open(bob.comeBack("/")).StatusCode, test.code)
			want(t, "status of the next request", bob.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
			counts := series(t, registry)
			want(t, "renewals", counts["slipway_gateway_oidc_refreshes_total "+test.result], 1.0)
			want(t, "log-ins", counts["slipway_gateway_oidc_logins_total "+test.result], 1.0)
			eventually(t, "the log says why", func() bool {
				clock.Step(time.Second) // it is written once in a while
				return strings.Count(join(log.Lines()), `"failure":"oidc_`+test.result+`"`) == 2
			})
			none(t, "the backend", requests)
		})
	}
}
