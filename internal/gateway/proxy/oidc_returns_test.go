package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// Somebody else may have routes of a host that a wider log-in is for, too. There nobody is sent to a provider whose answer would come
// to that route. The other hosts have their log-in.
func TestABrowserIsNotSentAwayFromAHostToWhichItCannotComeBack(t *testing.T) {
	p := newProvider(t)
	backend, _ := recording(t)
	narrower := "\n- {name: a, host: a.example.com, path: /oauth2, backendService: {name: app, port: 80}}\n"
	g := startTable(t, Options{}, compile(t, p.route()+narrower, p.secrets(), backend))
	for host, status := range map[string]string{"a.example.com": "500", "b.example.com": "302", "a.b.example.com": "302"} {
		text := g.exchangeRaw("GET /page HTTP/1.1\r\nHost: " + host + "\r\nAccept: text/html\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(text, "HTTP/1.1 "+status) || strings.Contains(text, "Location") != (status == "302") {
			t.Errorf("%s: got %s", host, text)
		}
	}
}

// Another site can send a browser to the address of the callback. It does not know the state.
func TestAWrongAnswerTakesNoLogInAway(t *testing.T) {
	_, g, requests, _ := startLogin(t)
	alice := newPerson(t, g)
	back := alice.comeBack("/")
	for _, slot := range strings.Split("abcdefghijklmnop", "") {
		want(t, "status", alice.open("/oauth2/callback?state="+slot+"x&code=1").StatusCode, http.StatusBadRequest)
	}
	want(t, "status of the right answer", alice.open(back).StatusCode, http.StatusFound)
	want(t, "status of the page", alice.open("/").StatusCode, http.StatusOK)
	received(t, requests)
}

// The time of a route bounds what its clients wait for, whatever the provider does.
func TestAProviderThatHangsHoldsNobodyLongerThanTheRoute(t *testing.T) {
	p := newProvider(t)
	backend, _ := recording(t)
	clock := testingclock.NewFakeClock(time.Now())
	g := startTable(t, Options{Clock: clock}, compile(t, p.route()+"  timeouts: {request: 200ms}\n", p.secrets(), backend))
	alice := newPerson(t, g)
	want(t, "status", alice.open("/").StatusCode, http.StatusOK)
	clock.Step(601 * time.Second)
	goOn := p.waiting()
	defer goOn()
	want(t, "status of a renewal", alice.open("/", "Accept", "*/*").StatusCode, http.StatusGatewayTimeout)
	bob := newPerson(t, g)
	back := bob.comeBack("/")
	start := time.Now()
	want(t, "status of a log-in", bob.open(back).StatusCode, http.StatusGatewayTimeout)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// Only the ID token counts for a session whose backend gets no access token, and which cannot be renewed. A provider may renew a
// session without a new ID token: a backend that is sent that token would get one that is over.
func TestASessionIsOverWhenWhatItIsForIs(t *testing.T) {
	for name, test := range map[string]struct {
		renewals renewals
		forward  string
		code     int
	}{
		"no renewal, no token for the backend":      {never, "None", http.StatusOK},
		"no renewal, the ID token for it":           {never, "IDToken", http.StatusOK},
		"no renewal, the access token for it":       {never, "AccessToken", http.StatusUnauthorized},
		"no new ID token, no token for the backend": {withoutIDToken, "None", http.StatusOK},
		"no new ID token, the access token for it":  {withoutIDToken, "AccessToken", http.StatusOK},
		"no new ID token, the ID token for it":      {withoutIDToken, "IDToken", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.renewals = test.renewals
			clock, alice := startForwarding(t, p, test.forward)
			clock.Step(601 * time.Second)
			want(t, "status", alice.open("/", "Accept", "*/*").StatusCode, test.code)
		})
	}
}

// The provider's clock may be behind. A token that is over at once would lead to a log-in without end.
func TestALogInWithTokensThatAreOverFails(t *testing.T) {
	p, g, _, _ := startLogin(t)
	p.set(func() { p.claims = map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()} })
	alice := newPerson(t, g)
	want(t, "status", alice.open(alice.comeBack("/")).StatusCode, http.StatusForbidden)
}
