package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// fragile is an HTTP/1 server that closes the connection without an answer when it cannot
// parse a request. It answers the paths that some applications have.
func fragile(t *testing.T) (address string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	return listen(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			request, err := http.ReadRequest(in)
			if err != nil || request.Method == "PRI" {
				return
			}
			if request.UserAgent() == "slipway-gateway health check" {
				asked.Add(1)
			}
			if request.Header.Get("X-Reset") != "" || request.ContentLength > 1<<20 {
				return
			}
			switch request.URL.Path {
			case "/crash":
				return
			case "/slow":
				_, _ = io.Copy(io.Discard, in) // until the gateway closes the connection
				return
			case "/malformed":
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")
			case "/502", "/503", "/504":
				_, _ = io.WriteString(conn, "HTTP/1.1 "+request.URL.Path[1:]+" X\r\nContent-Length: 0\r\n\r\n")
			case "/endless":
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
				if _, err := conn.Write(make([]byte, 10<<20)); err != nil {
					return
				}
			default:
				if _, err := io.Copy(io.Discard, request.Body); err != nil {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		}
	}), asked
}

// http2Abort opens a stream, sends a part of a body and resets the stream.
func http2Abort(g *gateway) {
	f := g.frames()
	f.open(1, false, with("content-length", "100000")...)
	_ = f.WriteData(1, false, make([]byte, 1000))
	_ = f.WriteRSTStream(1, http2.ErrCodeCancel)
	f.conn.Close()
}

func TestNoClientLeavesOutAnEndpoint(t *testing.T) {
	const end = " HTTP/1.1\r\nHost: a\r\n"
	// quickly sends and closes the connection. waiting sends and waits for the answer.
	quickly := func(text string) func(*gateway) {
		return func(g *gateway) {
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				g.t.Fatal(err)
			}
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}
	waiting := func(text string) func(*gateway) {
		return func(g *gateway) {
			conn, err := net.Dial("tcp", g.address)
			if err != nil {
				g.t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, text)
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, _ = conn.Read(make([]byte, 1))
		}
	}
	for name, behave := range map[string]func(*gateway){
		"gRPC":            waiting("POST /" + end + "Content-Type: application/grpc\r\nTE: trailers\r\nContent-Length: 5\r\n\r\n\x00\x00\x00\x00\x00"),
		"gRPC, in chunks": waiting("POST /" + end + "Content-Type: application/grpc+proto\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		"gRPC over HTTP/2": func(g *gateway) {
			f := g.frames()
			f.open(1, true, with("content-type", "application/grpc", "te", "trailers")...)
			f.outcome(1)
		},
		"an upgrade to HTTP/2":                  waiting("GET /" + end + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"),
		"an upgrade to what is none":            waiting("GET /" + end + "Connection: Upgrade\r\nUpgrade: foo\r\n\r\n"),
		"a request that it resets":              waiting("GET /" + end + "X-Reset: 1\r\n\r\n"),
		"a request that crashes it":             waiting("GET /crash" + end + "\r\n"),
		"one that takes too long":               waiting("GET /slow" + end + "\r\n"),
		"one that it answers wrongly":           waiting("GET /malformed" + end + "\r\n"),
		"502":                                   waiting("GET /502" + end + "\r\n"),
		"503":                                   waiting("GET /503" + end + "\r\n"),
		"504":                                   waiting("GET /504" + end + "\r\n"),
		"a body that it does not want":          waiting("POST /" + end + "Content-Length: 10000000\r\n\r\n" + strings.Repeat("x", 3<<20)),
		"a body that does not come":             waiting("POST /" + end + "Content-Length: 100000\r\n\r\nabc"),
		"a chunked body that does not come":     waiting("POST /" + end + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
		"a chunk that is none":                  waiting("POST /" + end + "Transfer-Encoding: chunked\r\n\r\nabc\r\n"),
		"an expectation":                        waiting("POST /" + end + "Expect: 100-continue\r\nContent-Length: 100000\r\n\r\n"),
		"a client that goes before the answer":  quickly("GET /slow" + end + "\r\n"),
		"a client that goes within its body":    quickly("POST /" + end + "Content-Length: 100000\r\n\r\nabc"),
		"a client that goes within a small one": quickly("POST /" + end + "Content-Length: 10\r\n\r\nabc"),
		"a client that goes within the answer":  waiting("GET /endless" + end + "\r\n"),
		"a stream that is reset":                http2Abort,
		"half a request":                        quickly("GET / HTTP/1.1\r\nHost: a"),
	} {
		t.Run(name, func(t *testing.T) {
			first, _ := fragile(t)
			second, _ := fragile(t)
			g := start(t, Options{ClientTimeout: 100 * time.Millisecond, Upstream: upstream.Options{
				Ejection: upstream.Ejection{Failures: 1}, ContinueTimeout: 50 * time.Millisecond,
			}}, `[{backendService: {name: app, port: 80}, timeouts: {backend: 50ms}}]`, first, second)
			for range 6 {
				behave(g)
			}
			// Both endpoints still answer all other clients.
			service := g.handler.registry.Service("app:80", nil)
			eventually(t, "the last request has ended", func() bool { return service.Busy() == 0 })
			service.Wait()
			if got := service.Ejected(); len(got) > 0 {
				t.Errorf("left out: %v", got)
			}
		})
	}
}

func TestAnEndpointThatFailsWhoeverAsksIsLeftOut(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing.Close()
	good := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, bad := range map[string]string{
		"nobody listens": refusing.Addr().String(),
		"it is dumb":     listen(t, func(conn net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(conn)) }),
		"it is starting": rawBackend(t, "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n"),
		"it hangs":       listen(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }),
		"it is no HTTP":  rawBackend(t, "SSH-2.0-x\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, Options{}, `[{backendService: {name: app, port: 80}, timeouts: {backend: 50ms}}]`, bad, good)
			service := g.handler.registry.Service("app:80", nil)
			eventually(t, "it is left out", func() bool {
				g.get("/")
				return len(service.Ejected()) == 1
			})
			want(t, "left out", join(service.Ejected()), bad)
		})
	}
}

// However many requests fail, the gateway checks an endpoint at most once per second.
func TestRequestsThatFailMakeTheGatewayAskRarely(t *testing.T) {
	first, asked := fragile(t)
	second, askedToo := fragile(t)
	g := start(t, Options{Upstream: upstream.Options{Ejection: upstream.Ejection{Failures: 1}}}, toApp, first, second)
	begin := time.Now()
	for range 200 {
		response, _ := g.get("/crash")
		want(t, "status", response.StatusCode, 502)
	}
	service := g.handler.registry.Service("app:80", nil)
	service.Wait()
	if n, most := asked.Load()+askedToo.Load(), 2*int64(1+time.Since(begin)/time.Second); n == 0 || n > most {
		t.Errorf("asked %d times, want 1 to %d", n, most)
	}
}

// Only the backend's configuration decides which protocol is spoken.
func TestTheProtocolIsTheBackends(t *testing.T) {
	spoken := make(chan string, 1)
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) { spoken <- r.Proto })
	g := start(t, Options{}, `[{path: /h1, backendService: {name: app, port: 80}}, {path: /h2, backendService: {name: h2, port: 80}}]`, backend)
	for _, contentType := range []string{"text/plain", "application/grpc", "application/grpc+proto", "application/grpc; x=y"} {
		for path, proto := range map[string]string{"/h1": "HTTP/1.1", "/h2": "HTTP/2.0"} {
			for _, client := range []*http.Client{http.DefaultClient, http2Client(t)} {
				request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+g.address+path, strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", contentType)

				response, err := client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				want(t, fmt.Sprint(contentType, " to ", path), <-spoken, proto)
			}
		}
	}
}
