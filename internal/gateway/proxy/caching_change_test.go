package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// changing is a gateway with a page at two Services, and a route for changes.
func changing(t *testing.T, changes string, answer http.HandlerFunc) *counting {
	t.Helper()
	return startCounting(t, Options{}, `[
{name: change, methods: [POST], `+changes+`},
{name: app, path: /app, rewrite: {pathPrefix: /}, backendService: {name: app, port: 80}, cache: {}},
{name: h2, path: /h2, rewrite: {pathPrefix: /}, backendService: {name: h2, port: 80}, cache: {}},
{name: host, path: /host, rewrite: {pathPrefix: /, host: other.example.com}, backendService: {name: app, port: 80}, cache: {}}]`, answer)
}

// keeps waits until so many responses are kept. A client may have all of a response before.
func (c *counting) keeps(t *testing.T, responses int) {
	t.Helper()
	eventually(t, "responses are kept", func() bool { return c.handler.features.cache.Use().Responses == responses })
}

// A change is forgotten at all backends of its route, because they may have it in common, as each of them sees it.
func TestAChangeIsSeenAtAllBackendsOfItsRoute(t *testing.T) {
	for name, tc := range map[string]struct {
		changes string
		path    string
		asked   map[string]bool // the pages that are asked for again
	}{
		"one backend":           {"backendService: {name: app, port: 80}", "/page", map[string]bool{"/app/page": true}},
		"another page":          {"backendService: {name: app, port: 80}", "/other", nil},
		"two, one gets nothing": {"backends: [{name: app, port: 80}, {name: h2, port: 80, weight: 0}]", "/page", map[string]bool{"/app/page": true, "/h2/page": true}},
		"by another path":       {"path: /change, rewrite: {pathPrefix: /}, backendService: {name: app, port: 80}", "/change/page", map[string]bool{"/app/page": true}},
		"by another host":       {"rewrite: {host: other.example.com}, backendService: {name: app, port: 80}", "/page", map[string]bool{"/host/page": true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := changing(t, tc.changes, fresh())
			pages := []string{"/app/page", "/h2/page", "/host/page"}
			for _, page := range pages {
				c.get(page)
			}
			c.keeps(t, len(pages))
			response, _ := c.send(c.request("POST", tc.path))
			want(t, "status", response.StatusCode, http.StatusOK)
			for _, page := range pages {
				before := c.asked.Load()
				c.get(page)
				want(t, page+" is asked for again", c.asked.Load() > before, tc.asked[page])
			}
		})
	}
}

// A request that may have reached the backend may have changed something, whatever came of it. Whether it has reached it is not known
// here either: on a busy machine, its time may be over before.
func TestAChangeWithoutAnAnswerIsSeen(t *testing.T) {
	const app = "backendService: {name: app, port: 80}"
	for name, tc := range map[string]struct {
		changes string
		leaves  bool
		again   bool // the page is asked for again
	}{
		"the backend takes too long":  {app + ", timeouts: {backend: 50ms}, retries: {attempts: 0}", false, true},
		"the client leaves":           {app, true, true},
		"there is no backend":         {"backendService: {name: none, port: 80}", false, false},
		"the backend closes":          {app + ", requestHeaders: {set: [{name: X-Close, value: yes}]}, retries: {attempts: 0}", false, true},
		"another Service, no backend": {"backends: [{name: none, port: 80}]", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			reached, release := make(chan struct{}, 10), make(chan struct{})
			answer := fresh()
			var pages atomic.Int64
			c := changing(t, tc.changes, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					pages.Add(1)
					answer(w, r)
					return
				}
				reached <- struct{}{}
				if r.Header.Get("X-Close") != "" {
					panic(http.ErrAbortHandler)
				}
				<-release
			})
			t.Cleanup(func() { close(release) })
			c.get("/app/page")
			c.keeps(t, 1)
			c.clock.SetTime(time.Now()) // by which the backend's time is counted
			ctx, cancel := context.WithCancel(t.Context())
			ended, version := make(chan struct{}), 1
			if tc.leaves {
				version = 2 // over HTTP/1, it may still wait for the answer
			}
			go func() {
				defer close(ended)
				if response, err := clientOf(t, version).Do(c.request("POST", "/page").WithContext(ctx)); err == nil {
					_ = response.Body.Close()
				}
			}()
			if tc.leaves {
				<-reached
				cancel()
			}
			<-ended
			cancel()
			eventually(t, "the gateway is done with it", func() bool { return c.handler.current.Load().services[0].Requests() == 0 })
			if tc.again {
				eventually(t, "the page is asked for again", func() bool { c.get("/app/page"); return pages.Load() == 2 })
				return
			}
			c.get("/app/page")
			want(t, "requests for the page", pages.Load(), int64(1))
		})
	}
}

// What was on the way while something changed is not kept, be it new or confirmed.
func TestAChangeWhileABackendIsAsked(t *testing.T) {
	for name, confirms := range map[string]bool{"a new response": false, "a confirmation": true} {
		t.Run(name, func(t *testing.T) {
			reached, release := make(chan struct{}), make(chan struct{})
			var waits atomic.Bool
			c := changing(t, "backendService: {name: app, port: 80}", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("ETag", `"a"`)
				if r.Method == http.MethodGet && waits.Load() {
					reached <- struct{}{}
					<-release
				}
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
				}
			})
			if confirms {
				c.get("/app/page")
				c.later(time.Hour)
			}
			waits.Store(true)
			ended := make(chan string)
			go func() {
				response, err := clientOf(t, 1).Do(c.request("GET", "/app/page"))
				if err != nil {
					ended <- err.Error()
					return
				}
				_ = response.Body.Close()
				ended <- fmt.Sprint(response.StatusCode)
			}()
			<-reached
			waits.Store(false)
			c.send(c.request("POST", "/page"))
			close(release)
			want(t, "the answer to who has asked before", <-ended, "200")
			before := c.asked.Load()
			c.get("/app/page")
			want(t, "asked again", c.asked.Load(), before+1)
		})
	}
}

// A new table forgets what belongs to Services that it does not have, also what is on the way.
func TestANewTableForgetsWhatItDoesNotHave(t *testing.T) {
	const other = `[{name: web, backendService: {name: h2, port: 80}, cache: {}}]`
	pages, release := make(chan struct{}), make(chan struct{})
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = io.WriteString(w, "half")
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush()
			pages <- struct{}{}
			<-release
		}
	})
	g := start(t, Options{}, withCache, backend)
	g.get("/")
	eventually(t, "it is kept", func() bool { return g.handler.features.cache.Use().Responses == 1 })
	ended := make(chan string)
	go func() {
		response, err := clientOf(t, 1).Do(g.request("GET", "/slow"))
		if err != nil {
			ended <- err.Error()
			return
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		ended <- string(body)
	}()
	<-pages
	g.handler.Set(Config{Table: compile(t, other, nil, backend)})
	want(t, "kept after", g.handler.features.cache.Use().Responses, 0)
	close(release)
	want(t, "what was on the way", <-ended, "half")
	eventually(t, "it is not kept", func() bool { use := g.handler.features.cache.Use(); return use.Bytes == 0 && use.Held == 0 })
	g.handler.Set(Config{Table: compile(t, withCache, nil, backend)})
	response, _ := g.get("/")
	want(t, "when the Service is back", join(response.Header["Cache-Status"]), "slipway; fwd=miss")
}
