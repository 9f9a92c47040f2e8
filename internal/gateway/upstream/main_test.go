package upstream

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(code) // the fuzzing engine has its own goroutines
	}
	if left := goroutinesAbove(before); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// goroutinesAbove waits until there are no more goroutines than before. If that does not
// happen, it returns their stacks.
func goroutinesAbove(before int) string {
	ok := poll(func() bool { return runtime.NumGoroutine() <= before })
	if ok {
		return ""
	}
	stacks := make([]byte, 1<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}

// poll waits until a condition is true, for 10 s at most.
func poll(condition func() bool) bool {
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if !poll(condition) {
		t.Fatalf("did not come true in 10 s: %s", what)
	}
}

// backend is a server whose answers a test writes byte by byte.
type backend struct {
	listener net.Listener
	accepted atomic.Int64 // connections
	open     atomic.Int64
	wait     sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

// listen starts a backend. serve is called for each connection with the connection's
// number.
func listen(t testing.TB, serve func(conn *peer, number int)) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{listener: listener}
	b.wait.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			number := int(b.accepted.Add(1))
			b.open.Add(1)
			b.mu.Lock()
			b.conns = append(b.conns, raw)
			b.mu.Unlock()
			b.wait.Go(func() {
				defer b.open.Add(-1)
				defer raw.Close()
				serve(&peer{Conn: raw, in: bufio.NewReader(raw)}, number)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		b.mu.Lock()
		for _, conn := range b.conns {
			conn.Close()
		}
		b.mu.Unlock()
		b.wait.Wait()
	})
	return b
}

func (b *backend) address() string { return b.listener.Addr().String() }

// peer is the backend's end of a connection.
type peer struct {
	net.Conn

	in *bufio.Reader
}

// head reads the head of a request. It returns "" at the end of the connection.
func (p *peer) head() string {
	var head strings.Builder
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return ""
		}
		if line == "\r\n" {
			return head.String()
		}
		head.WriteString(line)
	}
}

func (p *peer) send(text string) { _, _ = io.WriteString(p, text) }

// untilClosed waits until the other side closes the connection.
func (p *peer) untilClosed() { _, _ = io.Copy(io.Discard, p.in) }

// answering answers every request with the same bytes.
func answering(t testing.TB, response string) *backend {
	return listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			p.send(response)
		}
	})
}

// serving returns a Service with endpoints.
func serving(t testing.TB, options Options, addresses ...string) *Service {
	s := NewService(options, nil)
	s.Set(addresses)
	t.Cleanup(func() { s.Set(nil) })
	return s
}

func get() *Request {
	return &Request{Method: "GET", Target: "/", Host: "example.com"}
}

func post(body io.Reader, length int64) *Request {
	return &Request{
		Method: "POST", Target: "/", Host: "example.com",
		Body: body, ContentLength: length, StopBody: func() {},
	}
}

// readAll reads a body and closes the response.
func readAll(response *Response) (string, error) {
	defer response.Close()
	text, err := io.ReadAll(response)
	return string(text), err
}

// fetch sends a request and returns the status and the body.
func fetch(t testing.TB, s *Service, req *Request) (int, string) {
	t.Helper()
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	status := response.Status
	text, err := readAll(response)
	if err != nil {
		t.Fatalf("read the body: %v", err)
	}
	return status, text
}

func wantKind(t testing.TB, err error, want Kind) {
	t.Helper()
	if got := KindOf(err); got != want {
		t.Fatalf("got error %v (%v), want %v", err, got, want)
	}
	var failure *Error
	if !errors.As(err, &failure) || failure.Error() == "" {
		t.Fatalf("the error says nothing: %#v", err)
	}
}

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
