package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

func (c *counting) later(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// What the cache says of a request is the same in Cache-Status (RFC 9211), in the access log and in the metric.
func TestWhatTheCacheSaysIsTheSameEverywhere(t *testing.T) {
	for name, tc := range map[string]struct {
		later       time.Duration
		method      string
		fields      []string
		status, log string // "": the field Cache-Status is not there
	}{
		"a hit":                    {status: "slipway; hit; ttl=30", log: "hit"},
		"another page":             {fields: []string{"Cookie", "a=1"}, status: "slipway; fwd=miss", log: "miss"},
		"confirmed":                {later: 31 * time.Second, status: "slipway; fwd=stale; fwd-status=304", log: "stale"},
		"not confirmed":            {later: 31 * time.Second, fields: []string{"Referer", "not confirmed"}, status: "slipway; fwd=stale", log: "stale"},
		"about something else":     {later: 31 * time.Second, fields: []string{"Referer", "other"}, status: "slipway; fwd=stale", log: "stale"},
		"the client's own":         {later: 31 * time.Second, fields: []string{"If-None-Match", `"mine"`}, status: "slipway; fwd=stale", log: "stale"},
		"a new one is wanted":      {fields: []string{"Cache-Control", "no-cache"}, status: "slipway; fwd=request; fwd-status=304", log: "stale"},
		"younger than there is":    {later: time.Second, fields: []string{"Cache-Control", "max-age=0"}, status: "slipway; fwd=stale; fwd-status=304", log: "stale"},
		"a part":                   {fields: []string{"Range", "bytes=0-1"}, status: "slipway; fwd=bypass", log: "bypass"},
		"a part of what is stored": {fields: []string{"Range", "bytes=0-1", "Cache-Control", "only-if-cached"}, log: "absent"},
		"a change":                 {method: "POST", status: "slipway; fwd=method", log: "bypass"},
		"nothing but what is kept": {fields: []string{"Cookie", "a=1", "Cache-Control", "only-if-cached"}, log: "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			log, metrics := &lockedbuffer.Buffer{}, prometheus.NewRegistry()
			routes := `[{name: web, backendService: {name: app, port: 80}, cache: {maxAgeSeconds: 30}}]`
			c := startCounting(t, Options{AccessLog: log, Metrics: metrics}, routes, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("ETag", `"a"`)
				// Referer tells it what to do, and is no part of what is asked for.
				if strings.Contains(r.Header.Get("If-None-Match"), `"a"`) && r.Header.Get("Referer") != "not confirmed" {
					if r.Header.Get("Referer") == "other" {
						w.Header().Set("ETag", `"b"`)
					}
					w.WriteHeader(http.StatusNotModified)
				}
			})
			c.get("/")
			c.later(tc.later)
			request := c.request("GET", "/", tc.fields...)
			if tc.method != "" {
				request.Method = tc.method
			}
			before := len(log.String())
			response, _ := c.send(request)
			want(t, "Cache-Status", join(response.Header["Cache-Status"]), tc.status)
			if err := c.handler.log.Flush(); err != nil {
				t.Fatal(err)
			}
			if line := log.String()[before:]; !strings.Contains(line[strings.LastIndex(strings.TrimSpace(line), "\n")+1:], `"cache":"`+tc.log+`"`) {
				t.Errorf("the access log says %s, want %s", line, tc.log)
			}
			counted, err := testutil.GatherAndCount(metrics, "slipway_gateway_cache_requests_total")
			want(t, "series", fmt.Sprint(counted, err), "5 <nil>")
			got := series(t, metrics)["slipway_gateway_cache_requests_total "+tc.log+" web"]
			wanted := 1.0
			if tc.log == "miss" {
				wanted = 2 // with that of before
			}
			want(t, "the metric", got, wanted)
		})
	}
}

// Copies are requests of the client, without conditions of the cache.
func TestACopyDoesNotHaveTheConditionsOfTheCache(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
		}
	})
	copied := make(chan string, 10)
	copies := serve(t, func(_ http.ResponseWriter, r *http.Request) { copied <- r.Header.Get("If-None-Match") })
	config := sticky(t, `[{backendService: {name: app, port: 80}, cache: {}, mirrors: [{backendService: {name: copy, port: 80}}]}]`,
		map[string][]string{"app": {at}, "copy": {copies}})
	c := startCounting(t, Options{}, `[]`, fresh())
	c.handler.Set(config)
	c.get("/")
	want(t, "the first copy", <-copied, "")
	response, _ := c.get("/", "Cache-Control", "no-cache")
	want(t, "the backend is asked", join(response.Header["Cache-Status"]), "slipway; fwd=request; fwd-status=304")
	want(t, "the second copy", <-copied, "")
}

// A backend that answers 304 about something else is asked once more, and retries count once.
func TestAFailedConfirmationCountsNothingTwice(t *testing.T) {
	var asked atomic.Int64
	registry := prometheus.NewPedanticRegistry()
	c := startCounting(t, Options{Metrics: registry}, `[{name: web, backendService: {name: app, port: 80}, cache: {}, retries: {attempts: 1, retryOn: ["503"]}}]`,
		func(w http.ResponseWriter, r *http.Request) {
			n := asked.Add(1)
			w.Header().Set("Cache-Control", "max-age=60")
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
			switch {
			case n == 2:
				w.WriteHeader(http.StatusServiceUnavailable)
			case r.Header.Get("If-None-Match") != "":
				w.WriteHeader(http.StatusNotModified)
			default:
				_, _ = fmt.Fprint(w, "answer ", n)
			}
		})
	c.get("/")
	c.later(time.Hour)
	response, body := c.get("/")
	want(t, "the answer", status(response)+body, "200answer 4")
	want(t, "retries", series(t, registry)["slipway_gateway_retries_total web"], 1.0)
	_, body = c.get("/")
	want(t, "the new one is kept", body+fmt.Sprint(asked.Load()), "answer 44")
}

// The connection of a 304 is free before the client takes the stored body, and the body is that of before.
func TestA304EndsBeforeItsBodyIsGiven(t *testing.T) {
	large := bytes.Repeat([]byte("large "), 1<<20)
	c := startCounting(t, Options{}, `[{name: web, backendService: {name: app, port: 80}, cache: {maxBytes: 8388608}}]`, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(large)
	})
	c.get("/")
	c.later(time.Hour)
	client := clientOf(t, 1)
	response, err := client.Transport.RoundTrip(c.request("GET", "/"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	eventually(t, "nothing of the backend is in use", func() bool { return c.handler.current.Load().services[0].Requests() == 0 })
	body, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(body, large) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// The answer to HEAD has the fields of that to GET, also where responses are compressed.
func TestAHitForHEADIsThatForGET(t *testing.T) {
	for name, accepts := range map[string]string{"gzip": "gzip", "zstd": "zstd", "none": ""} {
		for _, size := range []int{10, 100 << 10} {
			c := startCounting(t, Options{}, `[{name: web, backendService: {name: app, port: 80}, cache: {}, compression: {}}]`, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("ETag", `"a"`)
				_, _ = io.WriteString(w, strings.Repeat("x", size))
			})
			c.get("/", "Accept-Encoding", accepts)
			get, _ := c.get("/", "Accept-Encoding", accepts)
			head, _ := c.send(c.request("HEAD", "/", "Accept-Encoding", accepts))
			if get.Header["Content-Encoding"] == nil { // else it is the length of what is known only when it is encoded
				want(t, fmt.Sprint(name, " ", size, " length"), head.Header.Get("Content-Length"), get.Header.Get("Content-Length"))
			}
			for _, field := range []string{"Content-Encoding", "Etag", "Vary", "Cache-Status"} {
				want(t, fmt.Sprint(name, " ", size, " ", field), join(head.Header[field]), join(get.Header[field]))
			}
			want(t, "requests that the backend has got", c.asked.Load(), int64(1))
		}
	}
}
