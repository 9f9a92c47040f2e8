package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// The tests here say in which order features come. Each feature has tests of its own.

const (
	ofKeys  = "auth: {apiKey: {secretRef: {name: keys}, header: X-Key}}"
	ofPages = `cors: {allowOrigins: ["*"]}`
)

// startOrdered starts a gateway with a route to a backend that reports its requests. "right" and "other" are keys.
func startOrdered(t *testing.T, settings string) (*gateway, chan seen) {
	t.Helper()
	backend, requests := recording(t)
	keys := map[string][]byte{"alice": keyHash("right"), "bob": keyHash("other")}
	return startTable(t, Options{}, compile(t, "[{backendService: {name: app, port: 80}, "+settings+"}]", map[string]map[string][]byte{"keys": keys}, backend)), requests
}

// statuses sends requests with these fields, and returns the status of each.
func (g *gateway) statuses(method string, fields ...[]string) string {
	var got []string
	for _, these := range fields {
		response, _ := g.send(g.request(method, "/", these...))
		got = append(got, status(response))
	}
	return strings.Join(got, ",")
}

func (g *gateway) post(body string, fields ...string) answer {
	request := g.request(http.MethodPost, "/", fields...)
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	response, _ := g.send(request)
	return response
}

var preflight = []string{"Origin", "https://page.example", "Access-Control-Request-Method", "GET"}

// 1. An address that is not let in gets 403 also for a preflight.
func TestAnAddressIsJudgedBeforeAPreflight(t *testing.T) {
	g, requests := startOrdered(t, "clientAddresses: {deny: [127.0.0.1]}, "+ofPages)
	response, _ := g.send(g.request(http.MethodOptions, "/", preflight...))
	want(t, "answer", status(response)+response.Header.Get("Access-Control-Allow-Origin"), "403")
	none(t, "the backend", requests)
}

// 2. A preflight carries no credentials and is not counted. A page can read why it is refused.
func TestAPreflightComesBeforeLimitsAndAuth(t *testing.T) {
	g, _ := startOrdered(t, "rateLimit: {requests: 2, period: 1h}, "+ofKeys+", "+ofPages)
	want(t, "preflights", g.statuses(http.MethodOptions, preflight, preflight, preflight), "204,204,204")
	for _, code := range []int{401, 401, 429} {
		response, _ := g.get("/", "Origin", "https://page.example")
		want(t, "status", response.StatusCode, code)
		want(t, "who may read it", response.Header.Get("Access-Control-Allow-Origin"), "*")
	}
}

// 3. A limit for an address bounds guessing. One for a key counts who was proven.
func TestLimitsAreOnBothSidesOfAuth(t *testing.T) {
	right, other, wrong := []string{"X-Key", "right"}, []string{"X-Key", "other"}, []string{"X-Key", "wrong"}
	for _, per := range []string{"ClientAddress", "Route"} {
		g, _ := startOrdered(t, "rateLimit: {requests: 2, period: 1h, per: "+per+"}, "+ofKeys)
		want(t, per, g.statuses(http.MethodGet, wrong, wrong, wrong, right), "401,401,429,429")
	}
	g, _ := startOrdered(t, "rateLimit: {requests: 1, period: 1h, per: Key}, "+ofKeys)
	want(t, "Key", g.statuses(http.MethodGet, wrong, wrong, right, right, other, wrong), "401,401,200,429,200,401")
}

// 4. Nobody is redirected or answered who is not let in. What no backend gets has no bound, and what a Service is shown has one.
func TestAuthComesBeforeAnswersAndTheBoundOfBodies(t *testing.T) {
	key := []string{"X-Key", "right"}
	for action, allowed := range map[string]string{"redirect: {path: /to}": "302", "directResponse: {statusCode: 207}": "207", "backendService: {name: app, port: 80}": "413"} {
		backend, requests := recording(t)
		compiled := compile(t, "[{"+action+", "+ofKeys+"}]", map[string]map[string][]byte{"keys": {"alice": keyHash("right")}}, backend)
		compiled.Routes[0].MaxBodyBytes = 4
		g := startTable(t, Options{}, compiled)
		want(t, action, status(g.post("too long"))+" "+status(g.post("too long", key...)), "401 "+allowed)
		none(t, "the backend", requests)
	}
	asked := startAsking(t, ", body: {maxBytes: 100}", func(http.ResponseWriter, *http.Request) {})
	bounded := asked.handler.current.Load().Table
	bounded.Routes[0].MaxBodyBytes = 4
	asked.handler.Set(Config{Table: bounded})
	want(t, "what a Service would be shown", status(asked.post("too long"))+status(asked.post("four")), "413200")
	want(t, "what it is shown", received(t, asked.asked).body, "four")
	none(t, "the Service", asked.asked)
}

// forAll answers with its name, for all clients that have the same cookies.
func forAll(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=60")
		w.Header().Set("Vary", "Cookie")
		_, _ = io.WriteString(w, name)
	}
}

// 5. The endpoint is chosen first, and is no part of what the cache looks for.
func TestAffinityChoosesBeforeTheRequestIsBuilt(t *testing.T) {
	first, second := serve(t, forAll("first")), serve(t, forAll("second"))
	g := startSticky(t, sticky(t, `[{backendService: {name: app, port: 80}, sessionAffinity: {cookie: {}}, cache: {}}]`, map[string][]string{"app": {first, second}}))
	for _, tc := range []struct{ endpoint, name, says string }{{second, "second", "slipway; fwd=miss"}, {first, "second", "slipway; hit; ttl=60"}} {
		name, text := g.pinOf(tc.endpoint)
		response, body := g.get("/", "Cookie", name+"="+text)
		want(t, tc.says, body, tc.name)
		want(t, "the cache says", response.Header.Get("Cache-Status")[:len("slipway; ")+3], tc.says[:len("slipway; ")+3])
	}
}

// 6. Who is refused gets nothing from the cache. What it has is not copied, and copies ask for the whole.
func TestTheCacheComesAfterAdmissionAndAroundCopies(t *testing.T) {
	g, requests := startOrdered(t, ofKeys+", rateLimit: {requests: 2, period: 1h, per: Key}, cache: {}")
	key := []string{"X-Key", "right"}
	want(t, "answers", g.statuses(http.MethodGet, key, nil, key, key), "200,401,200,429")
	received(t, requests)

	clock := clocktesting.NewFakePassiveClock(time.Now())
	asked := make(chan seen, 10)
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- seen{Request: r}
		w.Header()["Date"] = nil
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("Cache-Control", "max-age=60")
	})
	g = start(t, Options{Clock: clock}, `[{backendService: {name: app, port: 80}, mirror: {backendService: {name: h2, port: 80}}, maxBodyBytes: 4, cache: {}}]`, backend)
	conditions := func(requests int) (protocols string) {
		g.handler.features.mirror.Wait()
		var all []string
		for range requests {
			r := received(t, asked)
			all = append(all, r.Proto+r.Header.Get("If-None-Match"))
		}
		slices.Sort(all)
		return strings.Join(all, ",")
	}
	g.get("/")
	want(t, "the first one is copied", conditions(2), "HTTP/1.1,HTTP/2.0")
	g.get("/")
	none(t, "anybody for what is stored", asked)
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	g.get("/")
	want(t, "the copy has no conditions", conditions(2), `HTTP/1.1"1",HTTP/2.0`)
	want(t, "a body over the bound", g.post("too long").StatusCode, 413)
	g.handler.features.mirror.Wait()
	none(t, "anybody for it", asked)
}

// 7. The cache keeps what the backend sends. The route has the last word about the head, but for pins, sessions and the coding.
func TestAResponseIsChangedInOrder(t *testing.T) {
	page := strings.Repeat("page ", 1000)
	var asked atomic.Int64
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "https://backend.example")
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, page)
	})
	routes := func(more string) string {
		return `[{backendService: {name: app, port: 80}, cors: {allowOrigins: ["https://a.example"]}, cache: {}, compression: {}, ` +
			`sessionAffinity: {cookie: {name: seat}}` + more + `}]`
	}
	g := start(t, Options{}, routes(`, responseHeaders: {remove: [Set-Cookie, Cache-Status]}`), backend)
	for _, tc := range []struct{ coding, cookie string }{{"gzip", "seat"}, {"", ""}} {
		response, body := g.get("/", "Origin", "https://a.example", "Accept-Encoding", tc.coding)
		want(t, "origin", join(response.Header["Access-Control-Allow-Origin"]), "https://a.example")
		want(t, "coding", response.Header.Get("Content-Encoding"), tc.coding)
		want(t, "the page itself", body == page, tc.coding == "")
		want(t, "what the route takes away", join(response.Header["Cache-Status"]), "")
		cookie, _, _ := strings.Cut(join(response.Header["Set-Cookie"]), "=")
		want(t, "what it cannot take away", cookie, tc.cookie)
	}
	want(t, "requests at the backend", asked.Load(), int64(1))
	g = start(t, Options{}, routes(`, responseHeaders: {set: [{name: Cache-Control, value: no-transform}]}`), backend)
	response, body := g.get("/", "Accept-Encoding", "gzip")
	want(t, "the edits decide about the coding", response.Header.Get("Content-Encoding")+body, page)
}

// 7, too. Sessions come after pins, and before them in a tunnel.
func TestSessionsComeAfterPinsButInTunnels(t *testing.T) {
	g, cookies := renewing(t, "  sessionAffinity: {cookie: {name: seat}}\n", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n")
	})
	cookies = strings.Join(slices.DeleteFunc(strings.Split(cookies, "; "), func(pair string) bool { return strings.HasPrefix(pair, "seat=") }), "; ")
	for upgrade, cache := range map[string]string{"": "Cache-Control: no-store\r\n", "Connection: upgrade\r\nUpgrade: test\r\n": "Cache-Control: no-store\r\nCache-Control: private=\"Set-Cookie\"\r\n"} {
		head := g.exchangeRaw("GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n" + upgrade + "Cookie: " + cookies + "\r\n" + map[bool]string{true: "Connection: close\r\n"}[upgrade == ""] + "\r\n")
		seat, session := strings.Index(head, "Set-Cookie: seat="), strings.Index(head, ".s0=1.")
		if seat < 0 || session < 0 || (seat < session) != (upgrade == "") || !strings.Contains(head, cache) || strings.Count(head, "Cache-Control") != strings.Count(cache, "Cache-Control") {
			t.Errorf("upgrade %q: got %s", upgrade, head)
		}
	}
}

// 8. What guards others holds on routes that ask for nothing.
func TestGuardsHoldOnEveryRoute(t *testing.T) {
	const evil = "slipway-oidc-x.s0=1.evil"
	backend := rawBackend(t, "HTTP/1.1 103 Early Hints\r\nSet-Cookie: "+evil+"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: own=1\r\nSet-Cookie: "+evil+"\r\n\r\n")
	for action, own := range map[string]int{
		"backendService: {name: app, port: 80}": 1, "directResponse: {statusCode: 200}": 0, "redirect: {path: /to}": 0, "backendService: {name: none, port: 80}": 0,
	} {
		g := start(t, Options{}, "[{"+action+"}, {path: /edited, "+action+", responseHeaders: {add: [{name: Set-Cookie, value: "+evil+"}]}}]", backend)
		for _, path := range []string{"/", "/edited"} {
			text := g.exchangeRaw("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			want(t, action+path, strings.Count(text, "evil"), 0)
			want(t, action+path+": other cookies", strings.Count(text, "own=1"), own)
		}
	}
	g := start(t, Options{}, toApp, rawBackend(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\nSet-Cookie: "+evil+"\r\n\r\n"))
	want(t, "in a tunnel", join(first(g.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: test\r\n\r\n")).Header["Set-Cookie"]), "")

	recorder, requests := recording(t)
	g = start(t, Options{}, toApp, recorder)
	g.get("/", "Cookie", "theme=dark; "+evil)
	want(t, "cookies for the backend", join(received(t, requests).Header["Cookie"]), "theme=dark")
}

func first(response answer, _ string) answer { return response }

// 8, too. A request of a route without a cache changes what others have there.
func TestEveryChangeIsSeenByTheCache(t *testing.T) {
	c := startCounting(t, Options{}, `[{name: change, methods: [POST], backendService: {name: app, port: 80}}, {name: web, backendService: {name: app, port: 80}, cache: {}}]`, fresh())
	c.get("/")
	c.get("/")
	want(t, "asked", c.asked.Load(), int64(1))
	c.send(c.request(http.MethodPost, "/"))
	c.get("/")
	want(t, "asked after a change", c.asked.Load(), int64(3))
}
