package proxy

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

const (
	soon = 60 * time.Millisecond
	// quiet is a silence that is longer than each bound.
	quiet = 4 * soon
	// hang is longer than any busy machine takes, and half of what a client may keep silent by default.
	hang = 30 * time.Second
)

// released fails if a request to the backend does not end.
func released(t *testing.T, g *gateway) {
	t.Helper()
	eventually(t, "the backend is left alone", func() bool {
		return g.handler.registry.Service("app:80", nil).Requests()+g.handler.registry.Service("h2:80", nil).Requests() == 0
	})
}

// reading is a backend that reads the body before it answers.
func reading(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err == nil {
		_, _ = io.WriteString(w, "ok")
	}
}

func TestABodyOverHTTP2MustKeepComing(t *testing.T) {
	for name, test := range map[string]struct {
		fields []string
		first  int // bytes that are sent
		route  string
	}{
		"a small one":         {[]string{"content-length", "100"}, 3, toApp},
		"a large one":         {[]string{"content-length", "100000"}, 3, toApp},
		"of unknown length":   {nil, 3, toApp},
		"nothing":             {nil, 0, toApp},
		"over HTTP/2 onwards": {nil, 3, toH2},
		"more than a window":  {nil, 40_000, toApp},
		// Fields that the client sends make no difference.
		"gRPC, it says":   {[]string{"content-type", "application/grpc", "te", "trailers"}, 3, toH2},
		"events, it says": {[]string{"accept", "text/event-stream", "content-type", "text/event-stream"}, 3, toApp},
	} {
		t.Run(name, func(t *testing.T) {
			g := start(t, Options{ClientTimeout: soon}, test.route, serve(t, reading))
			f := g.frames()
			begin := time.Now()
			f.open(1, false, with(test.fields...)...)
			for sent := 0; sent < test.first; sent += min(test.first-sent, 10_000) {
				_ = f.WriteData(1, false, make([]byte, min(test.first-sent, 10_000)))
			}
			answer := "408"
			if strings.HasPrefix(name, "gRPC") {
				answer = "200" // with a status of gRPC
			}
			want(t, "answer", f.outcome(1), answer)
			if took := time.Since(begin); took < soon || took > hang {
				t.Errorf("it took %v", took)
			}
			released(t, g)
			f.open(3, true, good...) // the connection still works
			want(t, "another stream", f.outcome(3), "200")
		})
	}
}

func TestAClientOverHTTP2MustTakeItsResponse(t *testing.T) {
	for name, test := range map[string]struct {
		body   int
		window uint32
		opens  int // how often the client opens the window
	}{
		"small":                  {10, 0, 0},
		"large":                  {1 << 20, 0, 0},
		"large, and it begins":   {1 << 20, 1000, 0},
		"large, and it goes on":  {1 << 20, 1000, 3},
		"of the gateway's own":   {-1, 0, 0},
		"with a window like any": {1 << 20, 65535, 0},
	} {
		t.Run(name, func(t *testing.T) {
			backend := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, test.body)) })
			routes := toApp
			if test.body < 0 {
				routes = `[{directResponse: {statusCode: 200, body: hello}}]`
			}
			g := start(t, Options{ClientTimeout: soon}, routes, backend)
			f := g.frames(http2.Setting{ID: http2.SettingInitialWindowSize, Val: test.window})
			f.open(1, true, good...)
			for opens := 0; ; {
				frame := f.next()
				if frame == nil {
					t.Fatal("closed")
				}
				if reset, ok := frame.(*http2.RSTStreamFrame); ok {
					want(t, "reset", reset.ErrCode, http2.ErrCodeInternal)
					break
				}
				if _, ok := frame.(*http2.DataFrame); ok && opens < test.opens {
					opens++
					_ = f.WriteWindowUpdate(1, 1000)
				}
			}
			released(t, g)
			f.open(3, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/")
			want(t, "another stream", f.outcome(3), "200")
		})
	}
}

// silent sends the head of a response and a part of its body, stays silent, and ends the
// response.
func silent(contentType string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(quiet):
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, " last")
	}
}

func TestABackendMustGoOnWithItsResponse(t *testing.T) {
	for name, test := range map[string]struct {
		contentType, timeouts string
		whole                 bool
	}{
		"bytes":           {"application/octet-stream", "{}", false},
		"nearly events":   {"text/event-stream2", "{}", false},
		"nearly gRPC":     {"application/grpc-web", "{}", false},
		"events":          {"text/event-stream", "{}", true},
		"events in UTF-8": {"Text/Event-Stream; charset=utf-8", "{}", true},
		"gRPC":            {"application/grpc", "{}", true},
		"gRPC with JSON":  {"application/grpc+json", "{}", true},
		"without a bound": {"text/plain", "{idle: 0s}", true},
		"with its own":    {"text/plain", "{idle: 1m}", true},
	} {
		for _, service := range []string{"app", "h2"} {
			t.Run(name+" from "+service, func(t *testing.T) {
				t.Parallel()
				var log lockedbuffer.Buffer
				g := start(t, Options{BackendTimeout: soon, AccessLog: &log},
					`[{backendService: {name: `+service+`, port: 80}, timeouts: `+test.timeouts+`}]`, serve(t, silent(test.contentType)))
				response, err := http2Client(t).Do(g.request("GET", "/", "Accept", "text/event-stream", "Content-Type", "application/grpc"))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				body, err := io.ReadAll(response.Body)
				if whole := err == nil && string(body) == "first last"; whole != test.whole {
					t.Errorf("got %q, %v", body, err)
				}
				released(t, g)
				eventually(t, "it is logged", func() bool { return strings.Contains(join(log.Lines()), `"status"`) })
				if stalled := strings.Contains(log.Lines()[0], `"failure":"backend_stalled"`); stalled == test.whole {
					t.Error(log.Lines()[0])
				}
			})
		}
	}
}

// If a backend answers with a stream, its client may be silent too.
func TestAStreamMayBeSilentBothWays(t *testing.T) {
	echo := func(contentType string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			w.Header().Set("Content-Type", contentType)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(w, r.Body)
		}
	}
	for name, test := range map[string]struct {
		contentType, route string
		whole              bool
	}{
		"gRPC":         {"application/grpc", toH2, true},
		"events":       {"text/event-stream", toApp, true},
		"bytes":        {"text/plain", toH2, false},
		"without idle": {"text/plain", `[{backendService: {name: app, port: 80}, timeouts: {idle: 0s}}]`, true},
	} {
		for _, version := range []string{"HTTP/1", "HTTP/2"} {
			t.Run(name+" over "+version, func(t *testing.T) {
				t.Parallel()
				g := start(t, Options{ClientTimeout: soon, BackendTimeout: soon}, test.route, serve(t, echo(test.contentType)))
				reader, writer := io.Pipe()
				request := g.request("POST", "/")
				request.Body, request.ContentLength = reader, -1
				client := http2Client(t)
				if version == "HTTP/1" {
					client = &http.Client{Transport: &http.Transport{}}
					defer client.CloseIdleConnections()
				}
				go func() { _, _ = io.WriteString(writer, "first") }()
				response, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				go func() {
					<-time.After(quiet)
					_, _ = io.WriteString(writer, " last")
					writer.Close()
				}()
				body, err := io.ReadAll(response.Body)
				if whole := err == nil && string(body) == "first last"; whole != test.whole {
					t.Errorf("got %q, %v", body, err)
				}
				reader.Close()
				released(t, g)
			})
		}
	}
}

// A client may send nothing during a call to a backend that is declared to speak gRPC.
func TestACallToADeclaredGRPCBackendMayBeSilent(t *testing.T) {
	g := startTable(t, Options{ClientTimeout: soon}, compileLimited(t, `{protocol: GRPC}`, serve(t, reading)))
	f := g.frames()
	f.open(1, false, with("content-type", "application/grpc", "te", "trailers")...)
	<-time.After(quiet)
	_ = f.WriteData(1, true, []byte("abc"))
	want(t, "answer", f.outcome(1), "200")
}

func TestIdleHoldsForTheClientToo(t *testing.T) {
	routes := `[{backendService: {name: app, port: 80}, timeouts: {idle: 60ms}}]`
	g := start(t, Options{}, routes, serve(t, reading))
	f := g.frames()
	f.open(1, false, good...)
	want(t, "HTTP/2", f.outcome(1), "408")
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc")
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	answer, _ := io.ReadAll(conn)
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("HTTP/1: got %q", answer)
	}
}

// Of a rule that says how long requests may take, no default of the proxy bounds the backend's pauses.
func TestABackendMayPauseAsLongAsARuleAllows(t *testing.T) {
	for name, test := range map[string]struct {
		timeouts model.Timeouts
		whole    bool
	}{
		"nothing is said":          {model.Timeouts{}, false},
		"no bound":                 {model.Timeouts{Patient: true}, true},
		"a bound that is far away": {model.Timeouts{Request: time.Minute, Patient: true}, true},
		"a try that may take long": {model.Timeouts{Attempt: time.Minute, Patient: true}, true},
		"a bound that is over":     {model.Timeouts{Request: 2 * soon, Patient: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startTable(t, Options{BackendTimeout: soon}, compileRules(t, table.Input{Rules: []table.Rule{
				{Name: "slow", Path: "/", Timeouts: test.timeouts, Backends: []model.BackendRef{backendTo("app")}},
			}}, map[string]string{"app": serve(t, silent("text/plain"))}))
			response, err := http2Client(t).Do(g.request("GET", "/"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if _, err = io.ReadAll(response.Body); (err == nil) != test.whole {
				t.Errorf("reading the response ended with %v", err)
			}
		})
	}
}
