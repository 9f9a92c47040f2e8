package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// A session in several cookies goes through a browser, over TLS and HTTP/2, where each cookie may be a field of its own.
func TestALongSessionGoesThroughABrowser(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificates := new(Certificates)
	if err := certificates.Set([]Certificate{certificate(t, 1, "a.example.com")}); err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakeClock(time.Now())
	g := startServer(t, Options{Clock: clock}, ServerOptions{HTTPS: listener, Certificates: certificates}, compile(t, p.route(), p.secrets(), backend))
	browser := func() *person {
		alice := newPerson(t, g)
		alice.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		t.Cleanup(alice.client.CloseIdleConnections)
		return alice
	}
	page := &url.URL{Scheme: "https", Host: listener.Addr().String(), Path: "/"}
	alice := browser()
	sessions := func() (n int) {
		for _, cookie := range alice.client.Jar.Cookies(page) {
			want(t, "prefix of "+cookie.Name, strings.HasPrefix(cookie.Name, "__Host-slipway-oidc-"), true)
			if strings.Contains(cookie.Name, ".s") {
				n++
			}
		}
		return n
	}
	p.set(func() { p.claims = map[string]any{"groups": strings.Repeat("g", 6000)} })
	got := alice.open(page.String())
	want(t, "status", got.StatusCode, http.StatusOK)
	want(t, "pieces", sessions() > 2, true)
	long := sessions()
	p.set(func() { p.claims = map[string]any{"groups": "g"} })
	clock.Step(601 * time.Second)
	renewed := alice.open(page.String())
	want(t, "status when it is renewed", renewed.StatusCode, http.StatusOK)
	for _, cookie := range renewed.Cookies {
		want(t, "attributes of "+cookie.Name, cookie.Secure && cookie.HttpOnly && cookie.Path == "/" && cookie.Domain == "" && cookie.SameSite == http.SameSiteLaxMode, true)
	}
	want(t, "fewer pieces", sessions() < long, true)
	want(t, "status after that", alice.open(page.String(), "Accept", "*/*").StatusCode, http.StatusOK)
	for range 3 {
		want(t, "cookies for the backend", join(received(t, requests).Header["Cookie"]), "")
	}
	p.set(func() { p.claims = map[string]any{"groups": strings.Repeat("g", 11500)} })
	want(t, "status of one that is too long", browser().open(page.String()).StatusCode, http.StatusInternalServerError)
	var fields strings.Builder
	for _, cookie := range alice.client.Jar.Cookies(page) {
		fields.WriteString(cookie.Name + "=" + cookie.Value + "; ")
	}
	plain, _ := g.get("/", "Cookie", fields.String())
	want(t, "status of the same cookies without TLS", plain.StatusCode, http.StatusUnauthorized)
}
