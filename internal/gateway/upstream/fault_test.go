package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestClientsDoNotGetEndpointsEjected(t *testing.T) {
	reading := listen(t, func(p *peer, _ int) { p.untilClosed() })
	reading2 := http2Backend(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	for name, test := range map[string]struct {
		endpoint string
		protocol Protocol
		stalls   bool // the client sends no body
		want     Kind
	}{
		"HTTP/2 to an endpoint of HTTP/1":   {answering(t, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").address(), HTTP2, false, WrongProtocol},
		"a body that does not come":         {reading.address(), HTTP1, true, Timeout},
		"a body that does not come, HTTP/2": {reading2, HTTP2, true, Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{}, test.endpoint)
			req := get()
			if test.stalls {
				body, end := io.Pipe()
				go func() { _, _ = io.Copy(end, strings.NewReader("abc")) }()
				req = post(body, 100_000)
				req.StopBody = func() { _ = body.Close() }
				req.Deadline = time.Now().Add(30 * time.Millisecond)
			}
			req.Protocol = test.protocol
			_, err := s.Do(t.Context(), req)
			if got := KindOf(err); got != test.want {
				t.Errorf("got %v (%v), want %v", got, err, test.want)
			}
			if failures := (*s.endpoints.Load())[0].failures.Load(); failures != 0 {
				t.Errorf("%d failures count against the endpoint", failures)
			}
		})
	}
}

func TestTheDeadlineHoldsBeforeTheRequestIsSent(t *testing.T) {
	silent := Options{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	for _, protocol := range []Protocol{HTTP1, HTTP2} {
		req := get()
		req.Protocol, req.Deadline = protocol, time.Now().Add(30*time.Millisecond)
		_, err := serving(t, silent, "192.0.2.1:80").Do(t.Context(), req)
		wantKind(t, err, Timeout)
	}
	stopped := make(chan struct{})
	req := post(readerFunc(func([]byte) (int, error) {
		<-stopped
		return 0, os.ErrDeadlineExceeded
	}), 10)
	req.StopBody, req.Deadline = func() { close(stopped) }, time.Now().Add(30*time.Millisecond)
	_, err := serving(t, Options{}, "192.0.2.1:80").Do(t.Context(), req)
	wantKind(t, err, RequestBody)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Who calls Do may let go of the request afterwards: what StopBody uses is gone then.
func TestABodyIsNotStoppedAfterItsRequestHasEnded(t *testing.T) {
	for range 20 {
		stopping, stopped := make(chan struct{}), false
		req := post(readerFunc(func([]byte) (int, error) {
			<-stopping // the rest of the body comes while the deadline passes
			return 0, io.ErrUnexpectedEOF
		}), 10)
		req.Deadline = time.Now().Add(5 * time.Millisecond)
		req.StopBody = func() {
			close(stopping)
			<-time.After(20 * time.Millisecond)
			stopped = true // with the race detector on, not after Do either
		}
		_, err := serving(t, Options{}, "192.0.2.1:80").Do(t.Context(), req)
		wantKind(t, err, RequestBody)
		if !stopped {
			t.Fatal("the body was being stopped when the request had ended")
		}
	}
}

func TestAnEndpointMustTakeTheRequest(t *testing.T) {
	hold := make(chan struct{})
	stuck := http2Backend(t, func(http.ResponseWriter, *http.Request) { <-hold })
	t.Cleanup(func() { close(hold) })
	s := serving(t, Options{SendTimeout: 50 * time.Millisecond}, stuck)
	req := post(strings.NewReader(strings.Repeat("x", 4<<20)), 4<<20)
	req.Protocol = HTTP2
	_, err := s.Do(t.Context(), req)
	wantKind(t, err, Timeout)
	if failures := (*s.endpoints.Load())[0].failures.Load(); failures != 0 {
		t.Errorf("%d failures count against the endpoint", failures)
	}
}

func TestAnEndpointMayTakeThePatientRequestSlowly(t *testing.T) {
	const size = 4 << 20
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(150 * time.Millisecond) // longer than SendTimeout
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	})
	plain := httptest.NewServer(slow)
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct {
		protocol Protocol
		address  string
	}{
		"HTTP/1": {HTTP1, plain.Listener.Addr().String()},
		"HTTP/2": {HTTP2, http2Backend(t, slow)},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{SendTimeout: 50 * time.Millisecond}, test.address)
			req := post(strings.NewReader(strings.Repeat("x", size)), size)
			req.Protocol, req.Patient = test.protocol, true
			if status, body := fetch(t, s, req); status != http.StatusOK || body != strconv.Itoa(size) {
				t.Errorf("got %d %q", status, body)
			}
			req = post(strings.NewReader(strings.Repeat("x", size)), size)
			req.Protocol, req.Patient, req.Deadline = test.protocol, true, time.Now().Add(20*time.Millisecond)
			_, err := s.Do(t.Context(), req)
			wantKind(t, err, Timeout)
		})
	}
}
