package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/bcrypt"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

func TestCORS(t *testing.T) {
	var asked atomic.Int64
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Access-Control-Allow-Origin", "https://backend.example.com")
	})
	g := start(t, Options{}, `
- backendService: {name: app, port: 80}
  cors: {allowOrigins: ["https://shop.example.com"], allowMethods: [GET, PUT], allowHeaders: [X-A], exposeHeaders: [X-B], allowCredentials: true, maxAgeSeconds: 60}
`, backend)
	preflight := []string{"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-a"}
	response, _ := g.send(g.request("OPTIONS", "/", append(preflight, "Origin", "https://shop.example.com")...))
	want(t, "preflight", status(response)+response.Header.Get("Access-Control-Allow-Origin"), "204https://shop.example.com")
	want(t, "methods", response.Header.Get("Access-Control-Allow-Methods"), "GET, PUT")
	want(t, "headers", response.Header.Get("Access-Control-Allow-Headers"), "X-A")
	want(t, "age", response.Header.Get("Access-Control-Max-Age"), "60")
	want(t, "credentials", response.Header.Get("Access-Control-Allow-Credentials"), "true")
	response, _ = g.send(g.request("OPTIONS", "/", append(preflight, "Origin", "https://evil.example.com")...))
	want(t, "preflight of another origin", status(response)+join(response.Header["Access-Control-Allow-Origin"]), "204")
	want(t, "requests to the backend", asked.Load(), int64(0))

	response, _ = g.get("/", "Origin", "https://shop.example.com")
	want(t, "origin", join(response.Header["Access-Control-Allow-Origin"]), "https://shop.example.com")
	want(t, "exposed", response.Header.Get("Access-Control-Expose-Headers"), "X-B")
	want(t, "vary", response.Header.Get("Vary"), "Origin")
	response, _ = g.get("/", "Origin", "https://evil.example.com")
	want(t, "another origin", status(response)+join(response.Header["Access-Control-Allow-Origin"]), "200")
}

func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return []byte("sha256:" + hex.EncodeToString(sum[:]))
}

func TestAPIKeys(t *testing.T) {
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, `
- backendService: {name: app, port: 80}
  auth: {apiKey: {secretRef: {name: keys}, header: X-API-Key, queryParam: key, clientHeader: X-Client}}
`, map[string]map[string][]byte{"keys": {"alice": append(append(keyHash("old"), '\n'), keyHash("new")...)}}, backend))
	for name, test := range map[string]struct {
		path   string
		fields []string
		code   int
		target string
	}{
		"no key":       {path: "/", code: 401},
		"wrong key":    {path: "/", fields: []string{"X-API-Key", "x"}, code: 401},
		"empty key":    {path: "/?key=", fields: []string{"X-API-Key", ""}, code: 401},
		"the hash":     {path: "/", fields: []string{"X-API-Key", string(keyHash("new"))}, code: 401},
		"key":          {path: "/?a=b", fields: []string{"X-API-Key", "new", "X-Client", "root", "X_client", "root"}, code: 200, target: "/?a=b"},
		"the old key":  {path: "/", fields: []string{"X-API-Key", "old"}, code: 200, target: "/"},
		"in the query": {path: "/?a=b&key=new&c=d", code: 200, target: "/?a=b&c=d"},
	} {
		t.Run(name, func(t *testing.T) {
			response, _ := g.get(test.path, test.fields...)
			want(t, "status", response.StatusCode, test.code)
			if test.code != 200 {
				return
			}
			r := <-requests
			want(t, "target", r.RequestURI, test.target)
			want(t, "client", join(r.Header["X-Client"])+join(r.Header["X_client"]), "alice")
			want(t, "key", join(r.Header["X-Api-Key"]), "")
		})
	}
}

func TestBasicAuthentication(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	backend, requests := recording(t)
	g := startTable(t, Options{}, compile(t, `
- backendService: {name: app, port: 80}
  auth: {basic: {secretRef: {name: users}, realm: shop, userHeader: X-User}}
`, map[string]map[string][]byte{"users": {"carol": hash}}, backend))
	for _, attempts := range []map[string]int{
		{"": 401, "carol:wrong": 401, "dave:secret": 401, ":secret": 401, "carol:secret": 200},
		{"carol:secret": 200, "carol:wrong": 401}, // after a correct password is remembered
	} {
		for credentials, code := range attempts {
			request := g.request("GET", "/", "X-User", "root")
			if user, password, ok := strings.Cut(credentials, ":"); ok {
				request.SetBasicAuth(user, password)
			}
			response, _ := g.send(request)
			want(t, credentials, response.StatusCode, code)
			if code == 401 {
				want(t, "question", response.Header.Get("WWW-Authenticate"), `Basic realm="shop", charset="UTF-8"`)
				continue
			}
			r := <-requests
			want(t, "user", join(r.Header["X-User"]), "carol")
			want(t, "password", join(r.Header["Authorization"]), "")
		}
	}
}

func TestRateLimit(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	g := start(t, Options{Clock: clock}, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 2, period: 10s, burst: 3}}]`, backend)
	codes := func(n int) string {
		var got []string
		for range n {
			response, _ := g.get("/")
			got = append(got, status(response)+response.Header.Get("Retry-After"))
		}
		return strings.Join(got, " ")
	}
	want(t, "at once", codes(4), "200 200 200 4295")
	clock.Step(4 * time.Second)
	want(t, "too early", codes(1), "4291")
	clock.Step(time.Second)
	want(t, "one more", codes(2), "200 4295")
	clock.Step(time.Hour)
	g.handler.Set(Config{Table: compile(t, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 2, period: 10s, burst: 3}}]`, nil, backend)})
	want(t, "after a pause", codes(4), "200 200 200 4295")
	g.handler.Set(Config{Table: compile(t, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 2, period: 10s, burst: 3}}]`, nil, backend)})
	want(t, "another table forgives nothing", codes(1), "4295")
}

func TestMirror(t *testing.T) {
	backend, requests := recording(t)
	g := start(t, Options{}, `[{backendService: {name: app, port: 80}, mirror: {backendService: {name: h2, port: 80}, percent: 100}}]`, backend)
	request := g.request("POST", "/a?b")
	request.Body, request.ContentLength = io.NopCloser(strings.NewReader("body")), 4
	response, _ := g.send(request)
	want(t, "status", response.StatusCode, 200)
	protocols := map[string]bool{}
	for range 2 {
		r := <-requests
		protocols[r.Proto] = true
		want(t, "request", r.RequestURI+r.body, "/a?bbody")
	}
	if !protocols["HTTP/1.1"] || !protocols["HTTP/2.0"] {
		t.Errorf("got %v", protocols)
	}
}

func TestRetriesOfARoute(t *testing.T) {
	var count atomic.Int64
	backend := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if count.Add(1)%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	g := start(t, Options{}, `[{backendService: {name: app, port: 80}, retries: {attempts: 2, retryOn: ["503"]}}]`, backend)
	response, _ := g.get("/")
	want(t, "GET", response.StatusCode, 200)
	response, _ = g.send(g.request("POST", "/"))
	want(t, "POST", response.StatusCode, 503)
}

// Backends differ in which characters they treat as a slash, and in path parameters.
func TestAPathThatIsAnotherRouteToSomeBackendsIsRefused(t *testing.T) {
	backend, _ := recording(t)
	g := startTable(t, Options{}, compile(t, `
- {path: /, backendService: {name: app, port: 80}}
- {path: /private/, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}, header: X-API-Key}}}
`, map[string]map[string][]byte{"keys": {"alice": keyHash("key")}}, backend))
	for path, code := range map[string]int{
		"/private/x":             401,
		"/%70rivate/x":           401,
		"/private%2Fx":           400,
		"/private%5cx":           400,
		`/private\x`:             400,
		"/private;a/x":           400,
		"/;a/private/x":          400,
		"/public/..;/private/x":  400,
		"/public%2F..%2Fprivate": 400,
		"/projects/a%2Fb":        200,
		"/files/a;v=1/b%5Cc":     200,
		"/private/x;a":           401,
	} {
		response, _ := g.raw("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n")
		want(t, path, response.StatusCode, code)
	}
}

func TestAccessLogSaysWhatHappenedAndNoSecret(t *testing.T) {
	backend, _ := recording(t)
	var log lockedbuffer.Buffer
	g := startTable(t, Options{AccessLog: &log}, compile(t, `
- name: shop
  backendService: {name: app, port: 80}
  auth: {apiKey: {secretRef: {name: keys}, header: X-API-Key, queryParam: key}}
`, map[string]map[string][]byte{"keys": {"alice": keyHash("canary")}}, backend))
	g.get("/a?key=canary", "User-Agent", "test \"1\" \xff", "Cookie", "canary", "Authorization", "canary", "Host", "shop.example.com")
	g.get("/b", "X-API-Key", "canary2")
	eventually(t, "two lines are written", func() bool { return len(log.Lines()) == 2 })
	lines := log.Lines()
	if strings.Contains(strings.Join(lines, ""), "canary") {
		t.Errorf("a secret is in the log:\n%s", lines)
	}
	var first, second map[string]any
	for i, into := range []*map[string]any{&first, &second} {
		if err := json.Unmarshal([]byte(lines[i]), into); err != nil {
			t.Fatalf("%v in %s", err, lines[i])
		}
		for _, varying := range []string{"time", "duration_us"} {
			if (*into)[varying] == nil {
				t.Errorf("no %s in %s", varying, lines[i])
			}
			delete(*into, varying)
		}
	}
	wantFirst := map[string]any{
		"method": "GET", "host": "shop.example.com", "path": "/a", "protocol": "HTTP/1.1", "route": "shop", "status": 200.0, "bytes": 2.0,
		"client": "127.0.0.1", "identity": "alice", "user_agent": "test \"1\" \ufffd", "upstream": backend,
	}
	if diff := cmp.Diff(wantFirst, first); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want(t, "failure", second["failure"], "unauthenticated")
}

// Also a request that no route matches came to the Gateway.
func TestEachLineNamesTheGateway(t *testing.T) {
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	var log lockedbuffer.Buffer
	g := startTable(t, Options{AccessLog: &log, Gateway: "team-a/edge"}, compile(t, `
- name: httproute/team-b/shop/0
  path: /a
  backendService: {name: app, port: 80}
`, nil, backend))
	g.get("/a")
	g.get("/b")
	eventually(t, "two lines are written", func() bool { return len(log.Lines()) == 2 })
	for i, wanted := range []map[string]any{
		{"gateway": "team-a/edge", "route": "httproute/team-b/shop/0"},
		{"gateway": "team-a/edge"},
	} {
		line := map[string]any{}
		if err := json.Unmarshal([]byte(log.Lines()[i]), &line); err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, field := range []string{"gateway", "route"} {
			if value, there := line[field]; there {
				got[field] = value
			}
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestAccessLogSample(t *testing.T) {
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fail" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	var log lockedbuffer.Buffer
	g := start(t, Options{AccessLog: &log}, toApp, backend)
	set := func(percent uint32) {
		g.handler.Set(Config{Table: compile(t, toApp, nil, backend), LogPercent: percent})
	}
	set(0)
	g.get("/fail")
	set(1)
	for range 5 {
		g.get("/fail")
	}
	for range 50 {
		g.get("/")
	}
	set(100)
	g.get("/last")
	eventually(t, "the last request is logged", func() bool { return strings.Contains(join(log.Lines()), "/last") })
	failures, others := 0, 0
	for _, line := range log.Lines() {
		if strings.Contains(line, "/fail") {
			failures++
		} else {
			others++
		}
	}
	if failures != 5 || others > 20 {
		t.Errorf("%d errors of 5 and %d other requests of 51 are logged", failures, others)
	}
}
