package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// forEverybody answers with what a page says, and has caches keep it, whoever asks. It counts.
func forEverybody(asked *atomic.Int64, page func(r *http.Request) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = io.WriteString(w, page(r))
	}
}

// The endpoint that a client stays at does not matter for what caches may keep. What only looks like its cookie does.
func TestClientsWithDifferentEndpointsShareWhatIsStored(t *testing.T) {
	var asked atomic.Int64
	page := forEverybody(&asked, func(r *http.Request) string { return r.Header.Get("Cookie") })
	services := map[string][]string{"app": {serve(t, page), serve(t, page)}, "other": {serve(t, page)}}
	const routes = `[{name: web, path: /, backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb}}, cache: {}},
{name: none, path: /none, backendService: {name: app, port: 80}, sessionAffinity: {cookie: {name: lb}}}]`
	g := startSticky(t, sticky(t, routes, services))
	pins := map[string]bool{}
	for len(pins) < 2 {
		response, _ := g.get("/none")
		cookie, _ := cookieOf(t, response)
		pins[cookie] = true
	}
	asked.Store(0)
	for pin := range pins {
		for range 2 {
			response, _ := g.get("/", "Cookie", pin)
			wantNoCookie(t, response)
			g.get("/", "Cookie", "theme=dark; "+pin)
		}
	}
	want(t, "with and without another cookie", asked.Load(), int64(2))
	response, _ := g.get("/")
	want(t, "without any", strings.HasPrefix(join(response.Header["Cache-Status"]), "slipway; hit; "), true)
	wantNoCookie(t, response)
	for pin := range pins {
		for _, forged := range []string{pin + "x", "lb=<script>", "lb=", pin[:len(pin)-1], pin + "; lb=other", "lb=another; " + pin} {
			response, body := g.get("/", "Cookie", forged)
			want(t, forged, join(response.Header["Cache-Status"])+body, "slipway; fwd=miss"+forged)
		}
		break
	}
}

// Other origins may do what the route of the request says, whatever the backend said when it was stored.
func TestAStoredResponseIsForOriginsAsTheRouteSays(t *testing.T) {
	var asked atomic.Int64
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		forEverybody(&asked, func(*http.Request) string { return "page" })(w, r)
	})
	routes := func(origin string) string {
		return `[{name: web, backendService: {name: app, port: 80}, cors: {allowOrigins: ["` + origin + `"]}, cache: {}}]`
	}
	g := start(t, Options{}, routes("https://a.example.com"), backend)
	for origin, allowed := range map[string]string{"https://a.example.com": "https://a.example.com", "https://b.example.com": ""} {
		for range 2 {
			response, _ := g.get("/", "Origin", origin)
			want(t, origin, join(response.Header["Access-Control-Allow-Origin"]), allowed)
			want(t, "Vary", response.Header.Get("Vary"), "Origin")
		}
	}
	want(t, "requests that the backend has got", asked.Load(), int64(2))
	g.handler.Set(Config{Table: compile(t, routes("https://b.example.com"), nil, backend)})
	for origin, allowed := range map[string]string{"https://a.example.com": "", "https://b.example.com": "https://b.example.com"} {
		response, _ := g.get("/", "Origin", origin)
		want(t, "later, "+origin, join(response.Header["Access-Control-Allow-Origin"]), allowed)
	}
	want(t, "requests that the backend has got", asked.Load(), int64(2))
}

// A session that is renewed is told to its browser with a stored page too, and is not stored with it.
func TestARenewedSessionComesWithAStoredPage(t *testing.T) {
	p, clock := newProvider(t), testingclock.NewFakeClock(time.Now())
	var asked atomic.Int64
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil // it is of another clock
		forEverybody(&asked, func(r *http.Request) string { return r.Header.Get("X-Email") })(w, r)
	})
	route := strings.Replace(p.route(), "      forwardToken: AccessToken\n", "", 1) + "  cache: {}\n"
	g := startTable(t, Options{Clock: clock}, compile(t, route, p.secrets(), backend))
	alice := newPerson(t, g)
	want(t, "the page", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
	alice.open("/")
	alice.open("/", "Accept", "*/*")
	before := asked.Load()
	clock.Step(601 * time.Second)
	old := cookiesOf(alice)
	response, body := g.get("/", "Cookie", old, "Accept", "*/*")
	want(t, "the page", body+join(response.Header["Cache-Status"]), "alice@shop.testslipway; hit; ttl=2999")
	want(t, "a session is set", strings.Contains(join(response.Header["Set-Cookie"]), ".s0=1."), true)
	want(t, "other caches", join(response.Header["Cache-Control"]), "no-store")
	page := alice.open("/", "Accept", "*/*")
	want(t, "the page in another browser", page.Text, "alice@shop.test")
	page = alice.open("/", "Accept", "*/*")
	want(t, "the page with the new session", page.Text+join(page.Header["Set-Cookie"])+join(page.Header["Cache-Control"]), "alice@shop.testpublic, max-age=3600")
	want(t, "requests that the backend has got", asked.Load(), before)
	response, _ = g.get("/", "Accept", "*/*")
	want(t, "who has not logged in", response.StatusCode, http.StatusUnauthorized)
}

// What a backend is told of somebody is part of what is asked for.
func TestClaimsArePartOfWhatIsAskedFor(t *testing.T) {
	issuer := newIssuer(t)
	var asked atomic.Int64
	backend := serve(t, forEverybody(&asked, func(r *http.Request) string { return r.Header.Get("X-User") }))
	routes := strings.Replace(tokenRoute, "KEYS", "jwksSecretRef: {name: jwks, key: keys.json}", 1) + "  cache: {}\n  requestHeaders: {remove: [Authorization]}\n"
	g := startTable(t, Options{}, compile(t, routes, map[string]map[string][]byte{"jwks": {"keys.json": []byte(issuer.keySet())}}, backend))
	for round := range 2 {
		for _, user := range []string{"alice", "bob"} {
			token := issuer.token(map[string]any{"sub": user, "jti": fmt.Sprint(round)}) // another token of the same user
			_, body := g.get("/", "Authorization", "Bearer "+token)
			want(t, "the page of "+user, body, user)
		}
	}
	want(t, "requests that the backend has got", asked.Load(), int64(2))
	response, _ := g.get("/")
	want(t, "nobody", response.StatusCode, http.StatusUnauthorized)
}

func TestCertificatesArePartOfWhatIsAskedFor(t *testing.T) {
	ca := authority.New(t, "ca")
	g, _, server, secure := startIdentified(t, &ClientCheck{Identity: "a", Roots: ca.Pool(), Optional: true})
	config := g.handler.current.Load().Config
	config.Table = compile(t, withCache, nil, config.Table.Backends[0].Endpoints...)
	g.handler.Set(config)
	pages := map[string]int{}
	for _, name := range []string{"alice", "bob", ""} {
		tlsConfig := &tls.Config{RootCAs: server.Pool(), ServerName: "a.test"}
		if name != "" {
			certificate := ca.Issue(t, x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			tlsConfig.Certificates = []tls.Certificate{*certificate}
		}
		transport := &http.Transport{TLSClientConfig: tlsConfig}
		for _, says := range []string{"slipway; fwd=miss", "slipway; hit; "} {
			request, _ := http.NewRequest(http.MethodGet, "https://"+secure+"/", nil)
			request.Host = "a.test"
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if got := response.Header.Get("Cache-Status"); !strings.HasPrefix(got, says) {
				t.Errorf("%s: %s, want %s", name, got, says)
			}
			if name != "" && !strings.Contains(string(body), "DNS:"+name) {
				t.Errorf("%s gets %s", name, body)
			}
			pages[string(body)]++
		}
		transport.CloseIdleConnections()
	}
	want(t, "pages", len(pages), 3)
}

// Backends that speak HTTP/2 are asked, believed and asked to confirm like others.
func TestResponsesOverHTTP2AreStored(t *testing.T) {
	c := startCounting(t, Options{}, `[{name: web, backendService: {name: h2, port: 80}, cache: {}}]`, func(w http.ResponseWriter, r *http.Request) {
		want(t, "protocol", r.ProtoMajor, 2)
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"a"`)
		switch {
		case r.URL.Path == "/trailers":
			_, _ = io.WriteString(w, "page")
			w.Header().Set(http.TrailerPrefix+"X-T", "1")
			return
		case r.URL.Path == "/cut":
			_, _ = io.WriteString(w, "half a pa")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, "page")
	})
	c.get("/")
	c.keeps(t, 1)
	_, body := c.get("/")
	c.later(time.Hour)
	response, confirmed := c.get("/")
	want(t, "pages", body+confirmed, "pagepage")
	want(t, "confirmed", join(response.Header["Cache-Status"]), "slipway; fwd=stale; fwd-status=304")
	want(t, "requests that the backend has got", c.asked.Load(), int64(2))
	for path, asked := range map[string]int64{"/trailers": 2, "/cut": 2} {
		before := c.asked.Load()
		for range 2 {
			if response, err := clientOf(t, 1).Transport.RoundTrip(c.request("GET", path)); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
			eventually(t, "it has ended", func() bool { return c.handler.features.cache.Use().Held == 0 })
		}
		want(t, path, c.asked.Load()-before, asked)
	}
	want(t, "responses that are kept", c.handler.features.cache.Use().Responses, 1)
}
