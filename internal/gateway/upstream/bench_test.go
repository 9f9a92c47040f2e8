package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// BenchmarkGet is an exchange of 1 KiB on a kept connection, with the fields of a proxied
// request. It includes the cost of the backend.
func BenchmarkGet(b *testing.B) {
	response := []byte("HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Fri, 20 Nov 2026 20:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\n\r\n" +
		strings.Repeat("x", 1024))
	back := listen(b, func(p *peer, _ int) {
		request := make([]byte, 4096)
		for {
			n, err := p.Read(request)
			if err != nil {
				return
			}
			if bytes.HasSuffix(request[:n], []byte("\r\n\r\n")) {
				_, _ = p.Write(response)
			}
		}
	})
	s := serving(b, Options{}, back.address())
	req := &Request{Method: "GET", Target: "/api/x?y=z", Host: "example.com", Fields: []Field{
		{"User-Agent", "bench/1.0"},
		{"Accept", "*/*"},
		{"Accept-Encoding", "gzip"},
		{"X-Forwarded-For", "10.0.0.1"},
		{"X-Forwarded-Proto", "http"},
		{"X-Forwarded-Host", "example.com"},
	}}
	piece := make([]byte, 32<<10)
	b.ReportAllocs()
	for b.Loop() {
		response, err := s.Do(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = response.Read(piece)
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		response.Close()
	}
}

// BenchmarkHead only reads the head of a response.
func BenchmarkHead(b *testing.B) {
	const block = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Fri, 20 Nov 2026 20:00:00 GMT\r\nContent-Type: text/plain\r\nContent-Length: 1024\r\nCache-Control: no-cache\r\n\r\n"
	var h head
	b.ReportAllocs()
	for b.Loop() {
		if err := h.parse(block); err != nil {
			b.Fatal(err)
		}
	}
}
