package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// eightMiB answers with 8 MiB, in pieces, and counts what was taken of the answers to /stalled. It allows more requests on a connection
// than any client makes.
func eightMiB(t *testing.T, taken *atomic.Int64) string {
	t.Helper()
	piece := make([]byte, 4<<10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := 8 << 20
		if r.URL.Path != "/stalled" {
			size = 1 << 20
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for range size / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
			if r.URL.Path == "/stalled" {
				taken.Add(int64(len(piece)))
			}
		}
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10000}
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// What a client does not take costs 256 KiB of a response at most, and less when there are many of them. Others get theirs.
func TestAnswersThatNobodyTakes(t *testing.T) {
	const streams, perStream = 480, 64 << 10 // besides the windows: what net/http and copyBody hold, at the backend too
	var taken atomic.Int64
	g := start(t, Options{}, toH2, eightMiB(t, &taken))
	for range streams / 240 {
		conn, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		f := g.framesOn(conn, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for i := range uint32(240) {
			f.open(2*i+1, true, ":method", "GET", ":scheme", "http", ":authority", "a", ":path", "/stalled")
		}
	}
	const wide = 192 // three quarters of the wide windows: one client has them all
	const windows = wide*256<<10 + (streams-wide)*16<<10
	eventually(t, "the windows are used", func() bool { return taken.Load() > windows*9/10 })
	var waits []time.Duration
	for range 10 {
		began := time.Now()
		if got, body := g.get("/"); got.StatusCode != http.StatusOK || len(body) != 1<<20 {
			t.Errorf("another client got %d, %d bytes", got.StatusCode, len(body))
		}
		waits = append(waits, time.Since(began))
	}
	slices.Sort(waits)
	// Two may be slow because the machine is busy. More would be, if they waited for the windows of others.
	if waits[len(waits)/2] > time.Second || waits[len(waits)-3] > time.Second {
		t.Errorf("another client waited %s", waits)
	}
	if most := int64(windows + streams*perStream); taken.Load() > most {
		t.Errorf("%d bytes of answers were taken from the backend, want at most %d", taken.Load(), most)
	}
}

// Whoever sends requests and takes no answers loses the connection, whatever the answers are, and nothing waits for it any more.
func TestAConnectionOnWhichNobodyTakesAnswersEnds(t *testing.T) {
	const routes = `
- {host: direct, directResponse: {statusCode: 200, body: BODY}}
- {host: redirect, redirect: {host: new.example.com}}
- {backendService: {name: app, port: 80}}`
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Pad", strings.Repeat("p", 30000))
		if r.Host == "length" || r.Host == "whole" {
			w.Header().Set("Content-Length", "4")
		}
		if r.Host == "hint" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		if r.Host != "whole" {
			_ = http.NewResponseController(w).Flush()
			<-time.After(5 * time.Millisecond) // longer than a head waits for its body
		}
		_, _ = io.WriteString(w, "body")
	})
	g := start(t, Options{ClientTimeout: 100 * time.Millisecond}, strings.ReplaceAll(routes, "BODY", strings.Repeat("b", 4000)), backend)
	for _, host := range []string{"length", "whole", "chunked", "hint", "direct", "redirect"} {
		t.Run(host, func(t *testing.T) {
			conn := dialTCP(t, g.address)
			_ = conn.SetReadBuffer(4 << 10)
			go func() {
				for request := strings.Repeat("GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n", 1000); ; {
					if _, err := io.WriteString(conn, request); err != nil {
						return
					}
				}
			}()
			eventually(t, "the connection is open", func() bool { return g.handler.connections.Open() > 0 })
			eventually(t, "the connection is closed", func() bool { return g.handler.connections.Open() == 0 })
		})
	}
}
