package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	affinitysetting "github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// browse asks for paths in turn, as a browser that keeps the cookies. It returns who answered.
func (g *gateway) browse(t *testing.T, jar map[string]string, path string) string {
	t.Helper()
	var cookies []string
	for name, value := range jar {
		cookies = append(cookies, name+"="+value)
	}
	response, body := g.get(path, "Cookie", strings.Join(cookies, "; "))
	for _, set := range response.Header["Set-Cookie"] {
		pair, attributes, _ := strings.Cut(set, "; ")
		name, value, _ := strings.Cut(pair, "=")
		if len(value) > 256 {
			t.Errorf("the cookie %s has %d bytes", name, len(value))
		}
		if jar[name] = value; strings.HasPrefix(attributes, "Max-Age=0;") {
			delete(jar, name)
		}
	}
	return body
}

// Routes with different backends may have a cookie in common: each keeps what the others have set.
func TestRoutesWithTheSameCookieKeepEachOthersEndpoints(t *testing.T) {
	at := named(t, "a1", "a2", "a3", "b1", "b2", "b3")
	g := startSticky(t, sticky(t, `
- {path: /a, backendService: {name: a, port: 80}, sessionAffinity: {cookie: {name: lb}}}
- {path: /b, backendService: {name: b, port: 80}, sessionAffinity: {cookie: {name: lb}}}
- {path: /both, backends: [{name: b, port: 80}, {name: a, port: 80}], sessionAffinity: {cookie: {name: lb}}}
`, map[string][]string{"a": {at["a1"], at["a2"], at["a3"]}, "b": {at["b1"], at["b2"], at["b3"]}}))
	for range 20 {
		jar := map[string]string{}
		a, b := g.browse(t, jar, "/a"), g.browse(t, jar, "/b")
		cookie := jar["lb"]
		for range 5 {
			want(t, "the endpoint of a", g.browse(t, jar, "/a"), a)
			want(t, "the endpoint of b", g.browse(t, jar, "/b"), b)
			want(t, "the first of both", g.browse(t, jar, "/both"), a)
		}
		want(t, "the cookie", jar["lb"], cookie)
	}
}

// The same holds for a header that the client repeats.
func TestRoutesWithTheSameSessionHeaderKeepEachOthersEndpoints(t *testing.T) {
	at := named(t, "a1", "a2", "a3", "b1", "b2", "b3")
	rule := func(path, service string) table.Rule {
		return table.Rule{Name: path, Path: path, Settings: list.Settings{Affinity: &affinitysetting.Policy{By: affinitysetting.ByToken, Name: "Slipway-Session"}}, Backends: []model.BackendRef{backendTo(service)}}
	}
	of := func(names ...string) model.Service {
		var endpoints []string
		for _, name := range names {
			endpoints = append(endpoints, at[name])
		}
		return model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: endpoints}}}
	}
	compiled, problems := table.Compile(table.Input{
		Listeners: []table.Listener{{Name: "all"}},
		Rules:     []table.Rule{rule("/a", "a"), rule("/b", "b")},
		Services:  map[model.ServiceName]model.Service{{Namespace: "shop", Name: "a"}: of("a1", "a2", "a3"), {Namespace: "shop", Name: "b"}: of("b1", "b2", "b3")},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g := startSticky(t, Config{Table: compiled, SessionKey: sessionKey})
	for range 10 {
		response, a := g.get("/a")
		want(t, "status", response.StatusCode, 200)
		wantNoCookie(t, response)
		want(t, "a shared cache", join(response.Header["Cache-Control"]), `private="Slipway-Session"`)
		response, b := g.get("/b", "Slipway-Session", response.Header.Get("Slipway-Session"))
		session := response.Header.Get("Slipway-Session")
		for range 5 {
			again, body := g.get("/a", "Slipway-Session", session)
			want(t, "the endpoint of a", body+again.Header.Get("Slipway-Session"), a)
			again, body = g.get("/b", "Slipway-Session", session)
			want(t, "the endpoint of b", body+again.Header.Get("Slipway-Session"), b)
		}
	}
}

// A cookie does not grow without end. The oldest pins go, and those of backends that are not there any more.
func TestACookieHasOnlySoManyPins(t *testing.T) {
	const backends = maxPins + 2
	at := named(t, "x")
	var routes strings.Builder
	services := map[string][]string{}
	for i := range backends {
		name := fmt.Sprint("s", i)
		services[name] = []string{at["x"]}
		fmt.Fprintf(&routes, "- {path: /%s, backendService: {name: %s, port: 80}, sessionAffinity: {cookie: {name: lb}}}\n", name, name)
	}
	g := startSticky(t, sticky(t, routes.String(), services))
	jar := map[string]string{}
	for i := range backends {
		g.browse(t, jar, fmt.Sprint("/s", i))
	}
	want(t, "the length of the cookie", len(jar["lb"]), maxPins*pinLength)
	for i := range backends {
		response, _ := g.get(fmt.Sprint("/s", i), "Cookie", "lb="+jar["lb"])
		want(t, fmt.Sprintf("the pin of backend %d is there", i), response.Header["Set-Cookie"] == nil, i >= backends-maxPins)
	}
	g.handler.Set(sticky(t, `[{path: /s9, backendService: {name: s9, port: 80}, sessionAffinity: {cookie: {name: lb}}}, {path: /new, backendService: {name: new, port: 80}, sessionAffinity: {cookie: {name: lb}}}]`,
		map[string][]string{"s9": {at["x"]}, "new": {at["x"]}}))
	g.browse(t, jar, "/new")
	want(t, "the length with two backends", len(jar["lb"]), 2*pinLength)
}

// A Service that is there twice, with other changes of the request, counts as two backends.
func TestAServiceThatIsThereTwiceIsTwoBackends(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("X-Version")) })
	g := startSticky(t, sticky(t, `
- backends:
    - {name: app, port: 80, requestHeaders: {set: [{name: X-Version, value: one}]}}
    - {name: app, port: 80, requestHeaders: {set: [{name: X-Version, value: two}]}}
  sessionAffinity: {cookie: {}}
`, map[string][]string{"app": {address}}))
	reached := map[string]bool{}
	for range 40 {
		jar := map[string]string{}
		first := g.browse(t, jar, "/")
		reached[first] = true
		for range 5 {
			want(t, "the version", g.browse(t, jar, "/"), first)
		}
	}
	want(t, "versions that new clients get", len(reached), 2)
}

// A WebSocket gets the endpoint of the session, and may begin one.
func TestATunnelIsASession(t *testing.T) {
	upgrade := func(name string) string {
		return listen(t, func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Name: "+name+"\r\n\r\n")
		})
	}
	g := startSticky(t, sticky(t, byCookie, map[string][]string{"app": {upgrade("a"), upgrade("b"), upgrade("c")}}))
	const head = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n"
	response, _ := g.raw(head + "\r\n")
	want(t, "status", response.StatusCode, 101)
	cookie, _ := cookieOf(t, response)
	for range 10 {
		again, _ := g.raw(head + "Cookie: " + cookie + "\r\n\r\n")
		want(t, "the endpoint", again.Header.Get("X-Name"), response.Header.Get("X-Name"))
		wantNoCookie(t, again)
	}
}

// It is the same over HTTP/2, where a client may send cookies in several fields (RFC 9113, 8.2.3).
func TestACookieKeepsTheEndpointOverHTTP2(t *testing.T) {
	at := named(t, "a", "b", "c")
	g := startSticky(t, sticky(t, byCookie, map[string][]string{"app": {at["a"], at["b"], at["c"]}}))
	client := clientOf(t, 2)
	ask := func(cookies ...string) (body string, set []string) {
		t.Helper()
		request := g.request("GET", "/")
		request.Header["Cookie"] = cookies
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(read), response.Header["Set-Cookie"]
	}
	for range 10 {
		first, set := ask()
		if len(set) != 1 {
			t.Fatalf("the response sets %q", set)
		}
		pair, _, _ := strings.Cut(set[0], ";")
		for range 3 {
			again, more := ask("theme=dark", pair, "a=b")
			want(t, "the endpoint", again+join(more), first)
		}
	}
}

// Clients of an endpoint that is left out move to another one, and stay there when it comes back.
func TestClientsOfAnEndpointThatIsLeftOutMove(t *testing.T) {
	var starting atomic.Bool
	first := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if starting.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "first")
	})
	second := named(t, "second")["second"]
	clock := testingclock.NewFakeClock(time.Now())
	g := startTable(t, Options{Clock: clock}, nil)
	g.handler.Set(sticky(t, byCookie, map[string][]string{"app": {first, second}}))
	name, text := g.pinOf(first)
	jar := map[string]string{name: text}
	want(t, "its endpoint", g.browse(t, jar, "/"), "first")

	starting.Store(true)
	service := g.handler.registry.Service("app:80", nil)
	eventually(t, "it moves", func() bool {
		body := g.browse(t, jar, "/")
		service.Wait()
		return body == "second"
	})
	want(t, "left out", join(service.Ejected()), first)
	starting.Store(false)
	clock.Step(time.Hour)
	for range 10 {
		want(t, "the endpoint from then on", g.browse(t, jar, "/"), "second")
	}
}

// An endpoint that is overloaded, starting or stopping gets no client for good.
func TestAnEndpointThatFailsGetsNoPin(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
	})
	g := startSticky(t, sticky(t, byCookie, map[string][]string{"app": {address}}))
	for status, pinned := range map[int]bool{200: true, 404: true, 500: true, 501: true, 502: false, 503: false, 504: false, 507: false} {
		response, _ := g.get("/" + strconv.Itoa(status))
		want(t, fmt.Sprintf("status %d has a cookie", status), response.Header["Set-Cookie"] != nil, pinned)
	}
}

// What the gateway itself lacks says nothing about the endpoint.
func TestAClientKeepsItsEndpointWhenTheGatewayLacksSomething(t *testing.T) {
	for cause, forgotten := range map[syscall.Errno]bool{syscall.EMFILE: false, syscall.EADDRNOTAVAIL: false, syscall.ECONNREFUSED: true} {
		g := startTable(t, Options{Upstream: upstream.Options{Dial: func(context.Context, string) (net.Conn, error) { return nil, cause }}}, nil)
		g.handler.Set(sticky(t, byCookie, map[string][]string{"app": {"192.0.2.1:80"}}))
		name, text := g.pinOf("192.0.2.1:80")
		response, _ := g.get("/", "Cookie", name+"="+text)
		want(t, "status", response.StatusCode, 502)
		want(t, cause.Error()+": the endpoint is forgotten", response.Header["Set-Cookie"] != nil, forgotten)
	}
}
