package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// startReplicas starts two replicas of a gateway with one clock.
func startReplicas(t *testing.T) (*provider, [2]*gateway, *testingclock.FakeClock) {
	p := newProvider(t)
	backend, _ := recording(t)
	clock := testingclock.NewFakeClock(time.Now())
	var replicas [2]*gateway
	for i := range replicas {
		replicas[i] = startTable(t, Options{Clock: clock, Identity: "APIGateway a/b"}, compile(t, p.route(), p.secrets(), backend))
	}
	return p, replicas, clock
}

// A page sends many requests at the same time, which reach several replicas. A provider may take each refresh token only once.
func TestAReplicaThatIsTooLateToRenewEndsNoSession(t *testing.T) {
	_, replicas, clock := startReplicas(t)
	alice := newPerson(t, replicas[0])
	want(t, "status", alice.open("/").StatusCode, http.StatusOK)
	before := cookiesOf(alice)
	clock.Step(601 * time.Second)
	want(t, "the first replica", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
	for _, accept := range []string{"*/*", "text/html"} {
		late, _ := replicas[1].get("/", "Cookie", before, "Accept", accept)
		for _, cookie := range late.Header["Set-Cookie"] {
			if strings.Contains(cookie, ".s") {
				t.Errorf("%s: the late one sets %q", accept, cookie)
			}
		}
	}
	after, _ := replicas[1].get("/", "Cookie", cookiesOf(alice), "Accept", "*/*")
	want(t, "the other replica, with the new cookies", after.StatusCode, http.StatusOK)
}

// Answers with pieces of different texts would make a session that nobody can read.
func TestARenewedSessionIsTheSameInEveryAnswer(t *testing.T) {
	_, g, _, clock := startLogin(t)
	alice := newPerson(t, g)
	alice.open("/")
	before := cookiesOf(alice)
	clock.Step(601 * time.Second)
	first := ""
	for range 3 {
		response, _ := g.get("/", "Cookie", before, "Accept", "*/*")
		want(t, "status", response.StatusCode, http.StatusOK)
		set := strings.Join(response.Header["Set-Cookie"], "|")
		if first == "" {
			first = set
		}
		want(t, "cookies", set, first)
	}
	want(t, "a session is set", strings.Contains(first, ".s0="), true)
}
