package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkPlainRoute sends a request of 1 KiB through the gateway on kept connections.
// Client and backend run in the same process, so their cost is included.
func BenchmarkPlainRoute(b *testing.B) { benchmarkRoute(b, Options{}, toApp) }

// BenchmarkLimitedAndLogged is the same with a rate limit and an access log.
func BenchmarkLimitedAndLogged(b *testing.B) {
	benchmarkRoute(b, Options{AccessLog: io.Discard}, `[{backendService: {name: app, port: 80}, rateLimit: {requests: 1000000, period: 1s}}]`)
}

// benchmarkBackend answers requests without a body, and allocates nothing for it.
func benchmarkBackend(b *testing.B) string {
	response := []byte("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Fri, 20 Nov 2026 20:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" +
		strings.Repeat("x", 1024))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request := make([]byte, 4096)
				for {
					n, err := conn.Read(request)
					if err != nil {
						return
					}
					if bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
						_, _ = conn.Write(response)
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func benchmarkRoute(b *testing.B, options Options, routes string) {
	backend := benchmarkBackend(b)
	g := start(b, options, routes, backend)
	conn, err := net.Dial("tcp", g.address)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	request := []byte("GET /api/x HTTP/1.1\r\nHost: example.com\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = conn.Write(request)
		length := 0
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
			length += len(line)
		}
		if _, err := in.Discard(1024); err != nil || length == 0 {
			b.Fatal(err)
		}
	}
}

// discard is a response that is thrown away.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkHandler measures the handler without net/http's server.
func BenchmarkHandler(b *testing.B) {
	backend := benchmarkBackend(b)
	handler := New(Options{})
	handler.Set(Config{Table: compile(b, toApp, nil, backend)})
	b.Cleanup(func() { handler.registry.Keep(func(string) bool { return false }) })
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET /api/x HTTP/1.1\r\nHost: example.com\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")))
	if err != nil {
		b.Fatal(err)
	}
	request.RemoteAddr = "192.0.2.1:1234"
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(w, request)
		clear(w.header)
	}
}

// BenchmarkSetTable takes over a table of 5,000 routes: with a backend alone, and with what most features ask for.
func BenchmarkSetTable(b *testing.B) {
	for name, features := range map[string]string{
		"plain": "",
		"features": `, clientAddresses: {allow: [192.0.2.0/24]}, cors: {allowOrigins: ["https://example.org"]}, rateLimit: {requests: 100, period: 1s}` +
			`, maxBodyBytes: 1000, sessionAffinity: {cookie: {name: seat}}, cache: {}, compression: {}`,
	} {
		b.Run(name, func(b *testing.B) {
			var routes strings.Builder
			for i := range 5000 {
				fmt.Fprintf(&routes, "- {name: r%d, host: h%d.example.com, backendService: {name: app, port: 80}%s}\n", i, i, features)
			}
			handler := New(Options{})
			b.Cleanup(func() { handler.registry.Keep(func(string) bool { return false }) })
			config := Config{Table: compile(b, routes.String(), nil, "192.0.2.1:80")}
			if route := config.Table.Routes[0]; (route.Cache != nil) != (features != "") {
				b.Fatal(route.Unavailable)
			}
			handler.Set(config)
			b.ReportAllocs()
			for b.Loop() {
				handler.Set(config)
			}
		})
	}
}
