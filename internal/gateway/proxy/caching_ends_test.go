package proxy

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	cachesetting "github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// Of a body that ends with its connection, nobody can tell whether it is whole.
func TestABodyThatEndsWithItsConnectionIsNotKept(t *testing.T) {
	const fresh = "Cache-Control: max-age=60\r\n"
	for name, tc := range map[string]struct {
		response string
		asked    int64
	}{
		"a length":             {"HTTP/1.1 200 OK\r\n" + fresh + "Content-Length: 2\r\n\r\nok", 1},
		"HTTP/1.0, a length":   {"HTTP/1.0 200 OK\r\n" + fresh + "Content-Length: 2\r\n\r\nok", 1},
		"chunks":               {"HTTP/1.1 200 OK\r\n" + fresh + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1},
		"HTTP/1.0":             {"HTTP/1.0 200 OK\r\n" + fresh + "\r\nok", 2},
		"neither":              {"HTTP/1.1 200 OK\r\n" + fresh + "\r\nok", 2},
		"neither, and no body": {"HTTP/1.1 200 OK\r\n" + fresh + "\r\n", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			answer := func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					asked.Add(1)
					_, _ = io.WriteString(conn, tc.response)
				}
			}
			g := start(t, Options{}, withCache, listen(t, answer))
			g.get("/")
			g.get("/")
			want(t, "requests that the backend has got", asked.Load(), tc.asked)
		})
	}
}

// TLS without close_notify looks like an end to Go, and anybody on the way can cause it.
func TestABodyThatEndsWithoutCloseNotifyIsNotKept(t *testing.T) {
	ca := authority.New(t, "ca")
	config := &tls.Config{Certificates: []tls.Certificate{*ca.Issue(t, x509.Certificate{DNSNames: []string{"app.internal"}})}}
	var asked atomic.Int64
	endpoint := listen(t, func(raw net.Conn) {
		conn := tls.Server(raw, config)
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			asked.Add(1)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhalf a pa")
		}
	})
	compiled := withTLS(t, endpoint, backendTLS(t, model.BackendTLSInput{Roots: ca.PEM(), ServerName: "app.internal"}))
	for _, route := range compiled.Routes {
		route.Mirrors, route.Cache = nil, &cachesetting.Policy{MaxBytes: 100, MaxAge: time.Hour}
	}
	g := startTable(t, Options{}, compiled)
	for range 2 {
		response, body := g.get("/app")
		want(t, "the answer", status(response)+body, "200half a pa")
	}
	want(t, "requests that the backend has got", asked.Load(), int64(2))
}
