package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
)

const withCache = `[{name: web, backendService: {name: app, port: 80}, cache: {maxBytes: 100000}}]`

// counting is a gateway whose backend counts what it is asked.
type counting struct {
	*gateway

	asked atomic.Int64
	clock *clocktesting.FakePassiveClock
}

func startCounting(t *testing.T, options Options, routes string, answer http.HandlerFunc) *counting {
	t.Helper()
	c := &counting{clock: clocktesting.NewFakePassiveClock(time.Now())}
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		c.asked.Add(1)
		w.Header()["Date"] = nil // it is of another clock
		answer(w, r)
	})
	options.Clock = c.clock
	c.gateway = start(t, options, routes, backend)
	return c
}

// fresh answers with the number of the answer, which is fresh for a minute.
func fresh() http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"tag"`)
		w.Header().Set("X-Path", r.URL.Path)
		_, _ = fmt.Fprintf(w, "answer %d", n.Add(1))
	}
}

func TestABackendIsNotAskedAgain(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c := startCounting(t, Options{Metrics: metrics}, withCache, fresh())
	response, body := c.get("/a?b=c")
	want(t, "the first", body+response.Header.Get("Cache-Status")+response.Header.Get("Age"), "answer 1slipway; fwd=miss")
	c.clock.SetTime(c.clock.Now().Add(10 * time.Second))
	response, body = c.get("/a?b=c")
	want(t, "the second", status(response)+body+response.Header.Get("Cache-Status")+response.Header.Get("X-Path"), "200answer 1slipway; hit; ttl=50/a")
	want(t, "its age", response.Header.Get("Age"), "10")
	for path, body := range map[string]string{"/a?b=d": "2", "/A?b=c": "2", "/a?b=c&": "2", "/a": "2"} {
		_, got := c.get(path)
		if got == "answer 1" {
			t.Errorf("%s got the answer for another page: %s, want one like %s", path, got, body)
		}
	}
	response, body = c.get("/a?b=c", "If-None-Match", `W/"tag"`)
	want(t, "a client that has it", status(response)+body+response.Header.Get("Etag")+response.Header.Get("Content-Length"), `304"tag"`)
	response, body = c.send(c.request(http.MethodHead, "/a?b=c"))
	want(t, "its head", status(response)+body+response.Header.Get("Content-Length"), "2008")
	before := c.asked.Load()
	response, _ = c.get("/a?b=c", "Range", "bytes=0-1")
	want(t, "a part is asked for", c.asked.Load(), before+1)
	_, body = c.get("/a?b=c", "Cookie", "a=1")
	want(t, "with a cookie", body == "answer 1", false)
	response, _ = c.get("/none", "Cache-Control", "only-if-cached")
	want(t, "only from the cache", response.StatusCode, http.StatusGatewayTimeout)
	expected := `
# HELP slipway_gateway_cache_requests_total Requests of routes with a cache, by route and result: hit (answered by the cache), miss, stale (there was one, and the backend was asked for a newer one, or to confirm it), bypass (never answered by the cache), absent (the client wanted a stored response only, and there was none).
# TYPE slipway_gateway_cache_requests_total counter
slipway_gateway_cache_requests_total{result="absent",route="web"} 1
slipway_gateway_cache_requests_total{result="bypass",route="web"} 1
slipway_gateway_cache_requests_total{result="hit",route="web"} 3
slipway_gateway_cache_requests_total{result="miss",route="web"} 6
slipway_gateway_cache_requests_total{result="stale",route="web"} 0
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(expected), "slipway_gateway_cache_requests_total"); err != nil {
		t.Error(err)
	}
}

// A backend that is asked whether a response is still right is asked with its own tag, and never with that of a client.
func TestAStaleResponseIsConfirmed(t *testing.T) {
	version := atomic.Int64{}
	asked := make(chan string, 10)
	c := startCounting(t, Options{}, withCache, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("If-None-Match")
		tag := fmt.Sprintf(`"v%d"`, version.Load())
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", tag)
		w.Header().Set("X-Now", strconv.Itoa(len(asked)))
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = fmt.Fprintf(w, "page %d", version.Load())
	})
	later := func() { c.clock.SetTime(c.clock.Now().Add(61 * time.Second)) }
	c.get("/")
	want(t, "at first", <-asked, "")
	later()
	response, body := c.get("/")
	want(t, "confirmed", status(response)+body, "200page 0")
	want(t, "with the tag of the backend", <-asked, `"v0"`)
	_, body = c.get("/")
	want(t, "fresh again", body+fmt.Sprint(len(asked)), "page 00")
	later()
	version.Store(1)
	_, body = c.get("/")
	want(t, "changed", body+<-asked, `page 1"v0"`)
	_, body = c.get("/")
	want(t, "the new one is kept", body+fmt.Sprint(len(asked)), "page 10")
	later()
	response, body = c.get("/", "If-None-Match", `"mine"`)
	want(t, "the client's own question", status(response)+body+<-asked, `200page 1"mine"`)
}

// What the backend may have done for one client, it has not done for another.
func TestWhatIsForOneClientIsKeptFromOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		routes string
		answer map[string]string
		fields []string
		method string
		body   string
		hits   int64 // of two requests
	}{
		"nothing about time":          {answer: map[string]string{}},
		"private":                     {answer: map[string]string{"Cache-Control": "max-age=60, private"}},
		"a cookie":                    {answer: map[string]string{"Cache-Control": "max-age=60", "Set-Cookie": "session=1"}},
		"credentials":                 {answer: map[string]string{"Cache-Control": "max-age=60"}, fields: []string{"Authorization", "Bearer a"}},
		"credentials, for everybody":  {answer: map[string]string{"Cache-Control": "max-age=60, public"}, fields: []string{"Authorization", "Bearer a"}, hits: 1},
		"a body in a GET":             {answer: map[string]string{"Cache-Control": "max-age=60"}, body: "x"},
		"a POST":                      {answer: map[string]string{"Cache-Control": "max-age=60"}, method: "POST", body: "x"},
		"too large":                   {answer: map[string]string{"Cache-Control": "max-age=60", "X-Size": "100001"}},
		"just small enough":           {answer: map[string]string{"Cache-Control": "max-age=60", "X-Size": "100000"}, hits: 1},
		"too large, of unknown size":  {answer: map[string]string{"Cache-Control": "max-age=60", "X-Chunks": "100001"}},
		"small, of unknown size":      {answer: map[string]string{"Cache-Control": "max-age=60", "X-Chunks": "90000"}, hits: 1},
		"cut":                         {answer: map[string]string{"Cache-Control": "max-age=60", "X-Cut": "10"}},
		"a stream":                    {answer: map[string]string{"Cache-Control": "max-age=60", "Content-Type": "text/event-stream"}},
		"trailers that were not told": {answer: map[string]string{"Cache-Control": "max-age=60", "X-Trailer": "1", "X-Chunks": "10"}},
		"a route without a cache":     {routes: `[{name: web, backendService: {name: app, port: 80}}]`, answer: map[string]string{"Cache-Control": "max-age=60"}},
		"a route whose cache is off":  {routes: `[{name: web, backendService: {name: app, port: 80}, cache: {mode: "Off"}}]`, answer: map[string]string{"Cache-Control": "max-age=60"}},
		"the bound of the route":      {routes: `[{name: web, backendService: {name: app, port: 80}, cache: {maxBytes: 3}}]`, answer: map[string]string{"Cache-Control": "max-age=60", "X-Size": "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.routes == "" {
				tc.routes = withCache
			}
			if tc.method == "" {
				tc.method = "GET"
			}
			c := startCounting(t, Options{}, tc.routes, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for name, value := range tc.answer {
					w.Header().Set(name, value)
				}
				write(w, tc.answer)
			})
			for range 2 {
				request := c.request(tc.method, "/", tc.fields...)
				if tc.body != "" {
					request.Body, request.ContentLength = io.NopCloser(strings.NewReader(tc.body)), int64(len(tc.body))
				}
				response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
				if tc.hits > 0 { // a client may have the whole body before it is kept
					eventually(t, "the response is kept", func() bool { return c.handler.features.cache.Use().Responses > 0 })
				}
			}
			want(t, "requests that the backend has got", c.asked.Load(), 2-tc.hits)
			if use := c.handler.features.cache.Use(); tc.hits == 0 && use.Bytes != 0 {
				t.Errorf("something is kept: %+v", use)
			}
		})
	}
}

// write writes a body as the fields say.
func write(w http.ResponseWriter, fields map[string]string) {
	size := func(name string) int {
		n, _ := strconv.Atoi(fields[name])
		return n
	}
	switch {
	case fields["X-Cut"] != "":
		w.Header().Set("Content-Length", "20")
		_, _ = io.WriteString(w, strings.Repeat("x", size("X-Cut")))
		panic(http.ErrAbortHandler)
	case fields["X-Chunks"] != "":
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, strings.Repeat("x", size("X-Chunks")-1))
		if fields["X-Trailer"] != "" {
			w.Header().Set(http.TrailerPrefix+"X-T", "1")
		}
	default:
		w.Header().Set("Content-Length", strconv.Itoa(size("X-Size")))
		_, _ = io.WriteString(w, strings.Repeat("x", size("X-Size")))
	}
}

// Whoever has proven who he is gets his own page, also where the backend is not told who asks.
func TestAResponseForSomebodyIsNotForAnybody(t *testing.T) {
	const routes = `[{name: web, backendService: {name: app, port: 80}, cache: {}, auth: {apiKey: {secretRef: {name: keys}}}}]`
	for control, asked := range map[string]int64{"max-age=60": 2, "max-age=60, public": 1, "s-maxage=60": 1, "max-age=60, must-revalidate": 1} {
		t.Run(control, func(t *testing.T) {
			var got atomic.Int64
			backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Api-Key") != "" {
					t.Error("the backend is told who asks: it shows nothing")
				}
				w.Header().Set("Cache-Control", control)
				_, _ = fmt.Fprint(w, got.Add(1))
			})
			g := startTable(t, Options{}, compile(t, routes, map[string]map[string][]byte{"keys": {"alice": keyHash("alice's"), "bob": keyHash("bob's")}}, backend))
			for _, key := range []string{"alice's", "bob's"} {
				response, _ := g.get("/", "X-Api-Key", key)
				want(t, "status", response.StatusCode, http.StatusOK)
			}
			response, _ := g.get("/", "X-Api-Key", "mallory's")
			want(t, "who is nobody", response.StatusCode, http.StatusUnauthorized)
			want(t, "requests that the backend has got", got.Load(), asked)
		})
	}
}

func TestAChangeIsSeenAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		method string
		status int
		asked  int64
	}{
		"POST": {"POST", 200, 3}, "PUT": {"PUT", 204, 3}, "DELETE": {"DELETE", 202, 3}, "PATCH": {"PATCH", 303, 3}, "an unknown method": {"PURGE", 200, 3},
		"one that is refused": {"POST", 403, 2}, "one that has failed": {"POST", 500, 3}, "OPTIONS": {"OPTIONS", 200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			// The route for changes has no cache of its own.
			routes := `[{name: change, methods: [POST, PUT, DELETE, PATCH, PURGE, OPTIONS], backendService: {name: app, port: 80}}, {name: web, backendService: {name: app, port: 80}, cache: {}}]`
			c := startCounting(t, Options{}, routes, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == tc.method {
					w.WriteHeader(tc.status)
					return
				}
				fresh()(w, r)
			})
			c.get("/a")
			c.send(c.request(tc.method, "/a", "Cookie", "admin=1"))
			c.get("/a")
			want(t, "requests that the backend has got", c.asked.Load(), tc.asked)
		})
	}
}

// What routes change in a response, they change in a stored one, and its body is compressed for who wants it.
func TestAStoredResponseIsChangedAsAnyOther(t *testing.T) {
	c := startCounting(t, Options{}, `[
{name: a, path: /a, rewrite: {path: /page}, responseHeaders: {set: [{name: X-Route, value: a}], remove: [X-Internal]}, backendService: {name: app, port: 80}, cache: {}, compression: {minBytes: 1}},
{name: b, path: /b, rewrite: {path: /page}, responseHeaders: {set: [{name: X-Route, value: b}]}, backendService: {name: app, port: 80}, cache: {}}]`,
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("X-Internal", "yes")
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, strings.Repeat("text ", 100))
		})
	response, _ := c.get("/a")
	want(t, "the first route", response.Header.Get("X-Route")+response.Header.Get("X-Internal"), "a")
	response, body := c.get("/b")
	want(t, "the second route", response.Header.Get("X-Route")+response.Header.Get("X-Internal")+response.Header.Get("Content-Encoding"), "byes")
	want(t, "its body", body, strings.Repeat("text ", 100))
	response, _ = c.get("/a", "Accept-Encoding", "gzip")
	want(t, "compressed", response.Header.Get("Content-Encoding")+response.Header.Get("Vary"), "gzipAccept-Encoding")
	want(t, "requests that the backend has got", c.asked.Load(), int64(1))
}

// A page of one client never reaches another, whatever else is asked for at the same time, over both protocols.
func TestPagesDoNotCross(t *testing.T) {
	for _, version := range []int{1, 2} {
		c := startCounting(t, Options{}, withCache, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			random := rand.New(rand.NewPCG(rand.Uint64(), 1))
			w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", random.IntN(20)))
			w.Header().Set("Vary", "Accept-Language")
			if random.IntN(2) == 0 {
				w.Header().Set("ETag", `"`+r.URL.Path+r.Header.Get("Cookie")+r.Header.Get("Accept-Language")+`"`)
			}
			if tag := r.Header.Get("If-None-Match"); tag != "" && random.IntN(2) == 0 {
				w.Header().Set("ETag", tag)
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("Cookie")+" "+r.Header.Get("Accept-Language")+strings.Repeat(" x", random.IntN(5000)))
		})
		client := clientOf(t, version)
		var wait sync.WaitGroup
		for worker := range 8 {
			wait.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 2))
				for range 200 {
					path, cookie, language := fmt.Sprint("/", random.IntN(3)), fmt.Sprint("c=", random.IntN(3)), []string{"en", "de"}[random.IntN(2)]
					method := "GET"
					if random.IntN(10) == 0 {
						method = "POST"
					}
					request := c.request(method, path, "Cookie", cookie, "Accept-Language", language)
					response, err := client.Transport.RoundTrip(request)
					if err != nil {
						t.Error(err)
						return
					}
					body, _ := io.ReadAll(response.Body)
					_ = response.Body.Close()
					if wanted := path + " " + cookie + " " + language; response.StatusCode != http.StatusOK || string(body) != wanted && !strings.HasPrefix(string(body), wanted+" x") {
						t.Errorf("%s: %d %.60q", wanted, response.StatusCode, body)
					}
					if random.IntN(20) == 0 {
						c.clock.SetTime(c.clock.Now().Add(time.Second))
					}
				}
			})
		}
		wait.Wait()
		if use := c.handler.features.cache.Use(); use.Responses == 0 {
			t.Error("nothing was kept: it shows nothing")
		}
		eventually(t, "nothing is held", func() bool { return c.handler.features.cache.Use().Held == 0 })
	}
}

func BenchmarkCache(b *testing.B) {
	for _, name := range []string{"hit", "miss", "without"} {
		b.Run(name, func(b *testing.B) {
			body := strings.Repeat("x", 1<<10)
			backend := serve(b, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Cache-Control"] = []string{"max-age=3600"}
				_, _ = io.WriteString(w, body)
			})
			routes := `[{backendService: {name: app, port: 80}, cache: {}}]`
			if name == "without" {
				routes = `[{backendService: {name: app, port: 80}}]`
			}
			g := start(b, Options{}, routes, backend)
			client := &http.Client{}
			request := g.request("GET", "/")
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if name == "miss" {
					request.URL.Path = "/" + strconv.Itoa(n)
				}
				response, err := client.Do(request)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
}
