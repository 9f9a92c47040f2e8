package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRequestReachesTheBackendWithoutWhatConcernsOneConnection(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	g.raw("GET /a%2Fb/c?x=1&y=%20 HTTP/1.1\r\nHost: shop.example.com\r\n" +
		"Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Connection: keep-alive\r\n" +
		"TE: trailers, gzip\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n" +
		"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\n" +
		"Via: 1.0 edge\r\nCookie: a=b\r\nAccept: */*\r\n\r\n")
	r := <-requests
	want(t, "target", r.RequestURI, "/a%2Fb/c?x=1&y=%20")
	want(t, "host", r.Host, "shop.example.com")
	wantHeader := http.Header{
		"Accept": {"*/*"}, "Cookie": {"a=b"}, "Te": {"trailers"}, "Connection": {"TE"},
		"Via":             {"1.0 edge", "1.1 slipway"},
		"X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"shop.example.com"},
	}
	if diff := cmp.Diff(wantHeader, r.Header); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatATrustedProxySaysIsBelieved(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	g.handler.Set(Config{
		Table:          compile(t, toApp, nil, backend),
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")},
	})
	g.get("/", "X-Forwarded-For", "6.6.6.6, 203.0.113.7, 10.1.1.1", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "shop", "Forwarded", "for=203.0.113.7", "X-Forwarded-Prefix", "/x")
	r := <-requests
	want(t, "for", r.Header.Get("X-Forwarded-For"), "6.6.6.6, 203.0.113.7, 10.1.1.1, 127.0.0.1")
	want(t, "proto", r.Header.Get("X-Forwarded-Proto"), "https")
	want(t, "host", r.Header.Get("X-Forwarded-Host"), "shop")
	want(t, "forwarded", r.Header.Get("Forwarded"), "for=203.0.113.7")
	want(t, "prefix", r.Header.Get("X-Forwarded-Prefix"), "/x")
	e := call{handler: g.handler, state: g.handler.current.Load(), r: &http.Request{RemoteAddr: "127.0.0.1:1", Header: http.Header{"X-Forwarded-For": {"6.6.6.6, 203.0.113.7", "10.1.1.1"}}}}
	e.findClient()
	want(t, "client", e.Client.Text, "203.0.113.7")
}

// A proxy that is trusted may pass on what its own clients say. Who the client is, the gateway alone says.
func TestATrustedProxyDoesNotSayWhoTheClientIs(t *testing.T) {
	const route = `
- name: api
  backendService: {name: app, port: 80}
  auth: {apiKey: {secretRef: {name: keys}, clientHeader: X-Forwarded-User}}
`
	backend, requests := recording(t)
	sum := sha256.Sum256([]byte("swordfish"))
	compiled := compile(t, route, map[string]map[string][]byte{"keys": {"alice": []byte("sha256:" + hex.EncodeToString(sum[:]))}}, backend)
	g := startTable(t, Options{}, compiled)
	g.handler.Set(Config{Table: compiled, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, name := range []string{"X-Forwarded-User", "X_Forwarded_User", "x-forwarded_user"} {
		g.get("/", "X-API-Key", "swordfish", name, "admin", "Connection", "X-Forwarded-Prefix", "X-Forwarded-Prefix", "/x", "X-Forwarded-Port", "443")
		r := <-requests
		var said []string
		for name, values := range r.Header {
			if http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) == "X-Forwarded-User" {
				said = append(said, values...)
			}
		}
		if diff := cmp.Diff([]string{"alice"}, said); diff != "" {
			t.Errorf("%s: who the client is (-want +got):\n%s", name, diff)
		}
		want(t, "a field of the connection", r.Header.Get("X-Forwarded-Prefix"), "")
		want(t, "another field", r.Header.Get("X-Forwarded-Port"), "443")
	}
}

func TestResponseReachesTheClientAsItIs(t *testing.T) {
	backend := rawBackend(t, "HTTP/1.1 418 Short And Stout\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n"+
		"Set-Cookie: a=1\r\nset-cookie: b=2\r\nDate: Fri, 20 Nov 2026 20:00:00 GMT\r\nServer: teapot\r\nContent-Length: 2\r\n\r\nok")
	response, body := start(t, Options{}, toApp, backend).get("/")
	want(t, "status", response.StatusCode, 418)
	want(t, "body", body, "ok")
	wantHeader := http.Header{
		"Set-Cookie": {"a=1", "b=2"}, "Date": {"Fri, 20 Nov 2026 20:00:00 GMT"}, "Server": {"teapot"}, "Content-Length": {"2"},
	}
	if diff := cmp.Diff(wantHeader, response.Header); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRequestsThatTwoReadersCouldUnderstandDifferently(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	for name, test := range map[string]struct {
		request string
		status  int // 0: the request is valid, and one request
	}{
		"length and chunks":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, 0},
		"two lengths":                 {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 37\r\n\r\n" + smuggled, 400},
		"length with a sign":          {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", 400},
		"length list":                 {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 37\r\n\r\n" + smuggled, 400},
		"unknown coding":              {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
		"coding twice":                {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501},
		"vertical tab in the coding":  {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400},
		"space before the colon":      {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nabcde", 400},
		"no host":                     {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":                   {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		"host with a path":            {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
		"NUL in a value":              {"GET / HTTP/1.1\r\nHost: a\r\nA: b\x00c\r\n\r\n", 400},
		"carriage return in a value":  {"GET / HTTP/1.1\r\nHost: a\r\nA: b\rX: c\r\n\r\n", 400},
		"name with a space":           {"GET / HTTP/1.1\r\nHost: a\r\nA B: c\r\n\r\n", 400},
		"space in the target":         {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"fragment":                    {"GET /a?b#c HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"control byte in the target":  {"GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"CONNECT":                     {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501},
		"chunk size with a prefix":    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nok\r\n0\r\n\r\n", 400},
		"bare line feed after a size": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n", 400},
		"unknown expectation":         {"POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 0\r\n\r\n", 417},
		"another version":             {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505},
		"absolute form":               {"GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		"HTTP/1.0":                    {"GET / HTTP/1.0\r\n\r\n", 0},
		"folded field":                {"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n  c\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{t: t, address: g.address}
			response, _ := g.raw(test.request)
			if test.status != 0 {
				want(t, "status", response.StatusCode, test.status)
				return
			}
			want(t, "status", response.StatusCode, 200)
			r := <-requests
			for name, values := range r.Header {
				if strings.ContainsAny(name+join(values), "\r\n\x00") {
					t.Errorf("passed on: %q: %q", name, values)
				}
			}
			if len(r.TransferEncoding) > 0 && r.ContentLength >= 0 {
				t.Error("both framings arrive")
			}
		})
	}
	select {
	case r := <-requests:
		if r.URL.Path == "/smuggled" {
			t.Error("a request was smuggled")
		}
	default:
	}
}

func TestAbsoluteFormSaysTheHost(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, toApp, backend)
	g.raw("GET http://b.example.com/x?y HTTP/1.1\r\nHost: a\r\n\r\n")
	r := <-requests
	want(t, "host and target", r.Host+r.RequestURI, "b.example.com/x?y")
}

func TestAnswersOfTheGatewayItself(t *testing.T) {
	backend, _ := recording(t)
	g := start(t, Options{}, `
- {host: a, backendService: {name: app, port: 80}}
- {host: none, backendService: {name: none, port: 80}}
- {host: missing, backendService: {name: missing, port: 80}}
- {host: to, redirect: {scheme: https, host: new.example.com, statusCode: 308}}
- {host: direct, directResponse: {statusCode: 200, body: hello}, responseHeaders: {set: [{name: X-A, value: b}]}}
`, backend)
	for host, code := range map[string]int{"a": 200, "unknown": 404, "none": 503, "missing": 503, "to": 308, "direct": 200} {
		response, body := g.get("/p?q=1", "Host", host)
		want(t, host, response.StatusCode, code)
		if host == "to" {
			want(t, "location", response.Header.Get("Location"), "https://new.example.com/p?q=1")
		}
		if host == "direct" {
			want(t, "direct", body+response.Header.Get("X-A"), "hellob")
		}
	}
	response, body := g.send(g.request("HEAD", "/", "Host", "direct"))
	want(t, "HEAD", body+response.Header.Get("Content-Length"), "5")
	response, _ = startTable(t, Options{}, nil).get("/")
	want(t, "without a table", response.StatusCode, 503)
}

func TestFailuresOfBackends(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	for name, test := range map[string]struct {
		endpoint string
		code     int
	}{
		"refused":   {refusing.Addr().String(), 502},
		"malformed": {rawBackend(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 502},
		"silent": {serve(t, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}), 504},
	} {
		g := start(t, Options{}, `[{backendService: {name: app, port: 80}, timeouts: {backend: 50ms}}]`, test.endpoint)
		response, _ := g.get("/")
		want(t, name, response.StatusCode, test.code)
	}
}

func TestResponseThatIsCutDoesNotPassAsWhole(t *testing.T) {
	for name, answer := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nok",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nX",
	} {
		g := start(t, Options{}, `[{backendService: {name: app, port: 80}, timeouts: {request: 100ms}}]`, rawBackend(t, answer))
		response, err := http.Get("http://" + g.address)
		if err != nil {
			continue // cut before the head was sent
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err == nil {
			t.Errorf("%s: %q passes as whole", name, body)
		}
	}
}

func TestRewriteAndHeaderEdits(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `
- path: /api
  backendService: {name: app, port: 80}
  rewrite: {pathPrefix: /v2, host: inner.example.com}
  requestHeaders: {set: [{name: X-Set, value: s}], add: [{name: X-Add, value: a}], remove: [X-Gone]}
  responseHeaders: {set: [{name: Server, value: gw}], remove: [Content-Type]}
`, backend)
	response, _ := g.get("/api/users?x=1", "X-Gone", "1", "X-Set", "2", "X-Add", "3")
	r := <-requests
	want(t, "target", r.RequestURI, "/v2/users?x=1")
	want(t, "host", r.Host, "inner.example.com")
	want(t, "original host", r.Header.Get("X-Forwarded-Host"), g.address)
	want(t, "fields", join(r.Header["X-Set"])+join(r.Header["X-Gone"])+join(r.Header["X-Add"]), "s3 | a")
	want(t, "server", response.Header.Get("Server"), "gw")
}

func TestEventsAreNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		_ = control.Flush()
		for range 3 {
			<-next
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = control.Flush()
		}
	})
	for name, routes := range map[string]string{"HTTP/1.1": toApp, "HTTP/2": `[{backendService: {name: h2, port: 80}}]`} {
		t.Run(name, func(t *testing.T) {
			g := start(t, Options{}, routes, backend)
			response, err := http.Get("http://" + g.address) // the head comes before the first event
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			event := make([]byte, 100)
			for range 3 {
				next <- struct{}{}
				n, err := response.Body.Read(event)
				if string(event[:n]) != "data: x\n\n" {
					t.Fatalf("got %q, %v", event[:n], err)
				}
			}
			if rest, err := io.ReadAll(response.Body); len(rest) != 0 || err != nil {
				t.Errorf("got %q, %v", rest, err)
			}
		})
	}
}

func TestClientThatLeavesEndsTheWorkOfTheBackend(t *testing.T) {
	var under atomic.Int64
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		under.Add(1)
		defer under.Add(-1)
		<-r.Context().Done()
	})
	g := start(t, Options{}, toApp, backend)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	eventually(t, "the backend works", func() bool { return under.Load() == 1 })
	_ = conn.(*net.TCPConn).SetLinger(0) // otherwise it may still wait for the answer
	conn.Close()
	eventually(t, "the backend has stopped", func() bool { return under.Load() == 0 })
}

func TestTunnel(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("got %v", r.Header)
		}
		conn, in, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello ")
		_, _ = io.Copy(conn, in)
	})
	g := start(t, Options{}, `[{backendService: {name: app, port: 80}, timeouts: {request: 50ms, backend: 50ms}}]`, backend)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly ")
	<-time.After(80 * time.Millisecond) // longer than a request may take
	_, _ = io.WriteString(conn, "late")
	_ = conn.(*net.TCPConn).CloseWrite()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\r\n\r\n")
	want(t, "echo", rest, "hello early late")
	for _, line := range []string{"HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", "Sec-Websocket-Accept: x"} {
		if !strings.Contains(head+"\r\n", line+"\r\n") {
			t.Errorf("no %q in\n%s", line, head)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `[{backendService: {name: app, port: 80}, maxBodyBytes: 10}]`, backend)
	for body, code := range map[string]int{"0123456789": 200, "0123456789a": 413} {
		for _, length := range []int64{int64(len(body)), -1} {
			request := g.request("POST", "/")
			request.Body, request.ContentLength = io.NopCloser(strings.NewReader(body)), length
			response, _ := g.send(request)
			want(t, body, response.StatusCode, code)
		}
	}
	for range 2 {
		want(t, "body", (<-requests).body, "0123456789")
	}
}

func TestLargeBodiesBothWays(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	large := strings.Repeat("0123456789abcdef", 64<<10)
	for _, service := range []string{"app", "h2"} {
		g := start(t, Options{}, `[{backendService: {name: `+service+`, port: 80}}]`, backend)
		for _, length := range []int64{int64(len(large)), -1} {
			request := g.request("POST", "/")
			request.Body, request.ContentLength = io.NopCloser(strings.NewReader(large)), length
			response, body := g.send(request)
			if response.StatusCode != http.StatusOK || body != large {
				t.Errorf("%s, length %d: got %d and %d bytes", service, length, response.StatusCode, len(body))
			}
		}
	}
}

func TestExpectationIsTheBackendsToMeet(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Deny") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	g := start(t, Options{}, toApp, backend)
	for deny, first := range map[string]string{"": "HTTP/1.1 100 Continue\r\n", "X-Deny: 1\r\n": "HTTP/1.1 403 Forbidden\r\n"} {
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"+deny+"\r\n")
		line := make([]byte, len(first))
		_, _ = io.ReadFull(conn, line)
		want(t, "first line", string(line), first)
		_, _ = io.WriteString(conn, "body")
		rest, _ := io.ReadAll(conn)
		if deny == "" && !strings.HasSuffix(string(rest), "body") {
			t.Errorf("got %q", rest)
		}
		conn.Close()
	}
}

func TestEarlyHintsArePassedOn(t *testing.T) {
	g := start(t, Options{}, toApp, rawBackend(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	text, _ := io.ReadAll(conn)
	hints, final, _ := strings.Cut(string(text), "\r\n\r\n")
	if !strings.HasPrefix(hints, "HTTP/1.1 103 Early Hints\r\n") || !strings.Contains(hints, "Link: </a>") || strings.Contains(final, "Link") {
		t.Errorf("got %q", text)
	}
	response, body := g.raw("GET / HTTP/1.0\r\nHost: a\r\n\r\n")
	want(t, "to HTTP/1.0, which knows no hints", status(response)+body, "200ok")
}
