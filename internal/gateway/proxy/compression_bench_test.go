package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkCompression forwards 32 KiB of JSON. The first two show what a route with
// compression costs a client that does not accept it.
func BenchmarkCompression(b *testing.B) {
	var page strings.Builder
	for i := 0; page.Len() < 32<<10; i++ {
		fmt.Fprintf(&page, `{"id":%d,"name":"customer %d","email":"customer-%d@example.com","active":%v},`, i*7919, i, i*31, i%3 == 0)
	}
	body := page.String()[:32<<10]
	backend := rawBackend(b, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	for _, bench := range []struct{ name, routes, accepted string }{
		{"off", toApp, "gzip"}, {"identity", compressed, "br"}, {"gzip", compressed, "gzip"}, {"zstd", compressed, "zstd"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			handler := New(Options{})
			handler.Set(Config{Table: compile(b, bench.routes, nil, backend)})
			b.Cleanup(func() { handler.registry.Keep(func(string) bool { return false }) })
			request, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: " + bench.accepted + "\r\n\r\n")))
			if err != nil {
				b.Fatal(err)
			}
			request.RemoteAddr = "192.0.2.1:1234"
			w := &measured{discard: discard{header: http.Header{}}}
			b.ReportAllocs()
			for b.Loop() {
				w.bytes = 0
				handler.ServeHTTP(w, request)
				clear(w.header)
			}
			b.ReportMetric(float64(w.bytes), "B/response")
		})
	}
}

// measured counts the bytes of a response.
type measured struct {
	discard

	bytes int
}

func (m *measured) Write(p []byte) (int, error) {
	m.bytes += len(p)
	return len(p), nil
}
