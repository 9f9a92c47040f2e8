package upstream

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// refusing returns an address where nothing listens.
func refusing(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestRefusedConnectionIsTriedElsewhere(t *testing.T) {
	for _, protocol := range []Protocol{HTTP1, HTTP2} {
		b := answering(t, okResponse)
		if protocol == HTTP2 {
			b = nil
		}
		good := http2Backend(t, nil)
		if b != nil {
			good = b.address()
		}
		s := serving(t, Options{}, refusing(t), good, refusing(t))
		for range 20 {
			req := post(strings.NewReader("body"), 4)
			req.Protocol, req.Retry = protocol, Retry{Attempts: 2, On: model.OnConnectFailure}
			if status, _ := fetch(t, s, req); status != 200 {
				t.Fatalf("protocol %d: got %d", protocol, status)
			}
			large, writer, _ := pipeBody()
			large.Protocol, large.Retry = protocol, req.Retry
			go writer.Close()
			if status, _ := fetch(t, s, large); status != 200 {
				t.Fatalf("protocol %d: got %d", protocol, status)
			}
		}
	}
}

func TestRefusedConnectionIsNotTriedElsewhereUnlessAsked(t *testing.T) {
	b := answering(t, okResponse)
	s := serving(t, Options{Ejection: Ejection{Failures: 1 << 20, Unreachable: 1 << 20}}, refusing(t), b.address())
	failures := 0
	for range 40 {
		response, err := s.Do(t.Context(), get())
		if err != nil {
			wantKind(t, err, Connect)
			failures++
			continue
		}
		_, _ = readAll(response)
	}
	if failures == 0 {
		t.Error("every request reached the endpoint that is there")
	}
}

func TestNobodyThereIsAnError(t *testing.T) {
	_, err := serving(t, Options{}).Do(t.Context(), get())
	wantKind(t, err, NoEndpoints)
	_, err = serving(t, Options{}, refusing(t), refusing(t)).Do(t.Context(), get())
	wantKind(t, err, Connect)
	hang := func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	_, err = serving(t, Options{Dial: hang, DialTimeout: 10 * time.Millisecond}, "a:1").Do(t.Context(), get())
	wantKind(t, err, Connect)
}

// closingIdle answers one request per connection, and closes the connection without an
// answer when the second one arrives. A request sees the same when the endpoint closes an
// idle connection at that moment.
func closingIdle(t *testing.T) (*backend, *atomic.Int64) {
	seen := new(atomic.Int64)
	b := listen(t, func(p *peer, _ int) {
		if p.head() != "" {
			seen.Add(1)
			p.send(okResponse)
		}
		if p.head() != "" {
			seen.Add(1)
		}
	})
	return b, seen
}

func TestConnectionThatEndedWhileIdle(t *testing.T) {
	for name, test := range map[string]struct {
		method  string
		body    string
		stream  bool
		succeed bool
	}{
		"GET is sent again":                {method: "GET", succeed: true},
		"PUT with a small body":            {method: "PUT", body: "body", succeed: true},
		"DELETE":                           {method: "DELETE", succeed: true},
		"POST may have been acted on":      {method: "POST"},
		"POST with a body":                 {method: "POST", body: "body"},
		"PATCH":                            {method: "PATCH"},
		"PUT of which a part is gone":      {method: "PUT", body: "body", stream: true},
		"a method that nobody has defined": {method: "BREW"},
	} {
		t.Run(name, func(t *testing.T) {
			b, seen := closingIdle(t)
			s := serving(t, Options{}, b.address())
			fetch(t, s, get())
			req := get()
			req.Method = test.method
			if test.body != "" {
				req = post(strings.NewReader(test.body), int64(len(test.body)))
				req.Method = test.method
			}
			if test.stream {
				req.ContentLength = -1
			}
			response, err := s.Do(t.Context(), req)
			if test.succeed {
				if err != nil {
					t.Fatal(err)
				}
				if body, err := readAll(response); body != "ok" || err != nil {
					t.Errorf("got %q, %v", body, err)
				}
				if req.Resent() != 1 {
					t.Errorf("it says that it was sent again %d times", req.Resent())
				}
				return
			}
			wantKind(t, err, Reset)
			if n := seen.Load(); n != 2 {
				t.Errorf("the backend saw %d requests, want 2", n)
			}
			if len(s.Ejected()) != 0 || (*s.endpoints.Load())[0].failures.Load() != 0 {
				t.Error("the endpoint pays for closing an idle connection")
			}
		})
	}
}

func TestRequestIsNotSentTwiceOnceItWasAnswered(t *testing.T) {
	var requests atomic.Int64
	b := listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			if requests.Add(1) > 1 {
				p.send("HTTP/1.1 2")
				return
			}
			p.send(okResponse)
		}
	})
	s := serving(t, Options{}, b.address())
	fetch(t, s, get())
	_, err := s.Do(t.Context(), get())
	wantKind(t, err, Reset)
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestConnectionThatIsFoundClosedIsNotUsed(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		p.head()
		p.send(okResponse)
	})
	s := serving(t, Options{}, b.address())
	for range 5 {
		if status, _ := fetch(t, s, post(nil, 0)); status != 200 {
			t.Fatal(status)
		}
		eventually(t, "the endpoint has closed", func() bool { return b.open.Load() == 0 && idleIsDead(s) })
	}
}

// idleIsDead reports whether the end of every idle connection has arrived.
func idleIsDead(s *Service) bool {
	pool := (*s.endpoints.Load())[0].http1.(*pool)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	return !slices.ContainsFunc(pool.idle, func(c *conn) bool { return c.alive.unchanged() })
}

func TestConfiguredRetries(t *testing.T) {
	for name, test := range map[string]struct {
		request func() *Request
		retry   Retry
		answers []string // by request; empty: the connection ends; "-": no answer
		status  int
		kind    Kind
		sent    int64
	}{
		"status": {
			retry:   Retry{Attempts: 2, On: model.OnStatus503},
			answers: []string{"503", "503", "200"}, status: 200, sent: 3,
		},
		"status, as often as allowed": {
			retry:   Retry{Attempts: 1, On: model.OnStatus503},
			answers: []string{"503", "503", "200"}, status: 503, sent: 2,
		},
		"another status": {
			retry:   Retry{Attempts: 2, On: model.OnStatus503},
			answers: []string{"500"}, status: 500, sent: 1,
		},
		"reset": {
			retry:   Retry{Attempts: 1, On: model.OnReset},
			answers: []string{"", "200"}, status: 200, sent: 2,
		},
		"reset, not asked for": {
			retry: Retry{Attempts: 1, On: model.OnTimeout}, answers: []string{""}, kind: Reset, sent: 1,
		},
		"timeout": {
			retry:   Retry{Attempts: 1, On: model.OnTimeout},
			answers: []string{"-", "200"}, status: 200, sent: 2,
		},
		"timeout, not asked for": {
			retry: Retry{Attempts: 1, On: model.OnReset}, answers: []string{"-"}, kind: Timeout, sent: 1,
		},
		"POST": {
			request: func() *Request { return post(nil, 0) },
			retry:   Retry{Attempts: 2, On: model.OnStatus503},
			answers: []string{"503"}, status: 503, sent: 1,
		},
		"PUT with a body that is kept": {
			request: func() *Request { r := post(strings.NewReader("body"), 4); r.Method = "PUT"; return r },
			retry:   Retry{Attempts: 2, On: model.OnStatus503},
			answers: []string{"503", "200"}, status: 200, sent: 2,
		},
		"PUT with a body that is gone": {
			request: func() *Request { r := post(strings.NewReader("body"), -1); r.Method = "PUT"; return r },
			retry:   Retry{Attempts: 2, On: model.OnStatus503},
			answers: []string{"503"}, status: 503, sent: 1,
		},
		"malformed": {
			retry: Retry{Attempts: 2, On: model.OnReset | model.OnTimeout}, answers: []string{"abc"}, kind: Malformed, sent: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			b := listen(t, func(p *peer, _ int) {
				for {
					request, err := http.ReadRequest(p.in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					answer := test.answers[sent.Add(1)-1]
					if answer == "" {
						return
					}
					if answer == "-" {
						p.untilClosed()
						return
					}
					p.send("HTTP/1.1 " + answer + " X\r\nContent-Length: 0\r\n\r\n")
				}
			})
			req := get()
			if test.request != nil {
				req = test.request()
			}
			req.Retry = test.retry
			req.HeaderTimeout = 50 * time.Millisecond
			s := serving(t, Options{}, b.address())
			response, err := s.Do(t.Context(), req)
			if test.kind != 0 {
				wantKind(t, err, test.kind)
			} else if err != nil {
				t.Fatal(err)
			} else {
				if response.Status != test.status {
					t.Errorf("got %d, want %d", response.Status, test.status)
				}
				response.Close()
			}
			if n := sent.Load(); n != test.sent || req.Resent() != int(n)-1 || req.BudgetExhausted() {
				t.Errorf("sent %d times, want %d; the request says: sent again %d times, budget exhausted: %v", n, test.sent, req.Resent(), req.BudgetExhausted())
			}
		})
	}
}

func TestRetryGoesToAnotherEndpoint(t *testing.T) {
	bad := answering(t, "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
	good := answering(t, okResponse)
	s := serving(t, Options{Ejection: Ejection{Failures: 1 << 20, Unreachable: 1 << 20}}, bad.address(), good.address())
	for range 50 {
		req := get()
		req.Retry = Retry{Attempts: 1, On: model.OnStatus503}
		if status, _ := fetch(t, s, req); status != 200 {
			t.Fatalf("got %d", status)
		}
	}
}

func TestNoRetryAfterTheDeadline(t *testing.T) {
	var sent atomic.Int64
	b := listen(t, func(p *peer, _ int) {
		p.head()
		sent.Add(1)
		p.untilClosed()
	})
	req := get()
	req.Deadline = time.Now().Add(20 * time.Millisecond)
	req.Retry = Retry{Attempts: 5, On: model.OnTimeout}
	_, err := serving(t, Options{}, b.address()).Do(t.Context(), req)
	wantKind(t, err, Timeout)
	if n := sent.Load(); n != 1 {
		t.Errorf("sent %d times", n)
	}
}

// failingConn fails the first write, like a connection that was reset.
type failingConn struct {
	net.Conn

	fail *atomic.Bool
}

func (c failingConn) Write(p []byte) (int, error) {
	if c.fail.CompareAndSwap(true, false) {
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

func TestPostThatDidNotLeaveIsSentAgain(t *testing.T) {
	b := answering(t, okResponse)
	fail := new(atomic.Bool)
	s := serving(t, Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		raw, err := dialTCP(ctx, address)
		return failingConn{raw, fail}, err
	}}, b.address())
	fetch(t, s, get())
	fail.Store(true)
	if status, _ := fetch(t, s, post(strings.NewReader("body"), 4)); status != 200 {
		t.Errorf("got %d", status)
	}
	if fail.Load() {
		t.Error("no write failed")
	}
}
