package admin

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// pipes is a listener of in-process connections. Fake time works for them.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func newHandler() *Handler {
	return New(func() bool { return true }, prometheus.NewRegistry(), document.NewBoard(clock.RealClock{}, "1"))
}

func TestAClientHoldsTheAdminPortForNoLongerThanAPoll(t *testing.T) {
	for name, test := range map[string]struct {
		sends string
		ends  time.Duration // when the connection is closed
		want  string        // how the output begins
	}{
		"nothing":               {"", headerTimeout, ""},
		"half a head":           {"GET /readyz HTTP/1.1\r\nHost: a\r\n", headerTimeout, ""},
		"an answer, then quiet": {"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n", idleTimeout, "HTTP/1.1 200 "},
		"a poll":                {"GET /revision?wait=REVISION HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 30 * time.Second, "HTTP/1.1 200 "},
		"a body that stays out": {"GET /readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", exchangeTimeout, ""},
		"a large head":          {"GET /readyz HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", time.Second, "HTTP/1.1 431 "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handler := newHandler()
				listener := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				server := NewServer(handler)
				go func() { _ = server.Serve(listener) }()
				conn := listener.dial()
				begin := time.Now()
				go func() { _, _ = io.WriteString(conn, withRevision(handler, test.sends)) }()
				text, _ := io.ReadAll(conn)
				if took := time.Since(begin); took > test.ends+time.Second {
					t.Errorf("it is held for %v, want %v", took, test.ends)
				}
				if !strings.HasPrefix(string(text), test.want) {
					t.Errorf("got %.100q", text)
				}
				conn.Close()
				server.Close()
			})
		})
	}
}

// withRevision puts the current revision into a request.
func withRevision(handler *Handler, text string) string {
	if !strings.Contains(text, "REVISION") {
		return text
	}
	recorder := &answer{header: http.Header{}}
	request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "/revision", nil)
	handler.ServeHTTP(recorder, request)
	_, after, _ := strings.Cut(recorder.body.String(), `"revision":`)
	number, _, _ := strings.Cut(after, ",")
	return strings.Replace(text, "REVISION", strings.TrimRight(number, "}\n"), 1)
}

type answer struct {
	header http.Header
	body   strings.Builder
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(int)             {}
