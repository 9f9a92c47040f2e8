package upstream

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// reported sends what panicked to a channel.
func reported() (panics.Reporter, chan string) {
	doing := make(chan string, 100)
	return func(what string, _ any, _ []byte) { doing <- what }, doing
}

func told(t *testing.T, doing chan string, want string) {
	t.Helper()
	select {
	case got := <-doing:
		if got != want {
			t.Errorf("told of %q, want %q", got, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("not told of %q", want)
	}
}

// mined is a connection with a defect: it panics when a word is written.
type mined struct{ net.Conn }

func (m mined) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("panic")) {
		panic("a defect")
	}
	return m.Conn.Write(p)
}

func dialMined(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	return mined{conn}, err
}

// A body is sent on a goroutine of its own.
func TestAPanicOfSendingABodyEndsTheExchange(t *testing.T) {
	report, doing := reported()
	closed := make(chan struct{})
	b := listen(t, func(conn *peer, _ int) {
		conn.head()
		_, _ = conn.in.ReadByte() // the end
		close(closed)
	})
	s := serving(t, Options{Panics: report, Dial: dialMined}, b.address())
	if response, err := s.Do(t.Context(), post(strings.NewReader("panic"), -1)); err == nil {
		t.Errorf("the answer is %d", response.Status)
		response.Close()
	}
	told(t, doing, "send the body of a request")
	<-closed
}

func TestAPanicOfForwardingHintsEndsThoseAlone(t *testing.T) {
	report, doing := reported()
	s := serving(t, Options{Panics: report}, hinting(t, "103").address())
	request := getHints()
	request.Informational = func(int, []Field) { panic("a defect") }
	response, err := s.Do(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	response.Close()
	told(t, doing, "forward informational responses")
}

// It says nothing of the endpoint.
func TestAPanicOfACheckIsNoResult(t *testing.T) {
	report, doing := reported()
	var defect atomic.Bool
	defect.Store(true)
	b := newPatient(t, 200)
	c := checking(t, Options{Panics: report, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		if defect.Load() {
			panic("a defect")
		}
		return dialMined(ctx, address)
	}}, everySecond(), b.address())
	for range 5 {
		eventually(t, "a check panics", func() bool {
			c.clock.Step(time.Second / 10)
			return len(doing) > 0
		})
		told(t, doing, "connect to an endpoint")
	}
	if got := c.unhealthy(); len(got) != 0 || len(c.results) != 0 {
		t.Errorf("unhealthy are %v, and there are %d results", got, len(c.results))
	}
	defect.Store(false)
	if result := c.next(); result.Err != nil {
		t.Errorf("the check after that: %v", result.Err)
	}
}

// The gateway's own request to a suspected endpoint has a goroutine of its own.
func TestAPanicOfAskingEjectsNobody(t *testing.T) {
	report, doing := reported()
	s := serving(t, Options{Panics: report, Ejection: Ejection{Unreachable: 1, MaxPercent: 100}, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
		if isOwn(ctx) {
			panic("a defect")
		}
		return nil, errors.New("out of reach")
	}}, "192.0.2.1:1", "192.0.2.2:1")
	if response, err := s.Do(t.Context(), get()); err == nil {
		response.Close()
		t.Fatal("there is an answer")
	}
	told(t, doing, "connect to an endpoint")
	s.Wait()
	if got := s.Ejected(); len(got) != 0 {
		t.Errorf("ejected %v", got)
	}
}

// Who can cause a panic again and again must not use up what bounds the requests to a Service.
func TestAPanicLeavesNoPlaceTaken(t *testing.T) {
	report, doing := reported()
	b := answering(t, okResponse)
	var defect atomic.Bool
	s := serving(t, Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		if defect.Load() {
			panic("a defect")
		}
		return dialMined(ctx, address)
	}}, b.address())
	s.SetLimits(model.Limits{Requests: 1, Pending: 1, Connections: 1})
	do := func(ctx context.Context, request *Request) (err error) {
		defer report.Catch("the request")
		response, err := s.Do(ctx, request)
		if err == nil {
			response.Close()
		}
		return err
	}
	for range 10 {
		request := get()
		request.Target = "/panic"
		_ = do(t.Context(), request)
		told(t, doing, "the request")
		defect.Store(true)
		func() {
			defer report.Catch("the connection")
			_, _ = s.Connect(t.Context(), netip.Addr{})
		}()
		told(t, doing, "the connection")
		defect.Store(false)
	}
	s.gate.mu.Lock()
	if requests, exclusive, conns := s.gate.requests.Taken(), s.gate.exclusive.Taken(), s.gate.conns; requests+exclusive+conns != 0 {
		t.Errorf("the gate still counts %d requests, %d of them with a connection, and %d connections", requests, exclusive, conns)
	}
	s.gate.mu.Unlock()
	request := get()
	request.Deadline = time.Now().Add(10 * time.Second)
	if err := do(t.Context(), request); err != nil {
		t.Error(err)
	}
	for _, e := range *s.endpoints.Load() {
		if n := e.inFlight.Load(); n != 0 {
			t.Errorf("%d requests are in flight", n)
		}
	}
}

// The transport of HTTP/2 reads a body on a goroutine of its own.
func TestAPanicOfABodyOverHTTP2EndsTheExchange(t *testing.T) {
	report, doing := reported()
	silent := framesBackend(t, func(*streamsOf, uint32, string) {})
	s := serving(t, Options{Panics: report}, silent.address())
	asked := 0
	trailers := func() []Field {
		if asked++; asked > 1 {
			panic("a defect")
		}
		return []Field{{Name: "Grpc-Status"}}
	}
	for name, request := range map[string]*Request{
		"reading":     {Body: panicking{}},
		"the trailer": {Body: strings.NewReader("x"), Trailers: trailers},
	} {
		request.Method, request.Target, request.Host, request.Protocol = "POST", "/", "example.com", HTTP2
		request.ContentLength, request.StopBody, request.Deadline = -1, func() {}, time.Now().Add(10*time.Second)
		response, err := s.Do(t.Context(), request)
		if err == nil {
			response.Close()
		}
		if KindOf(err) != RequestBody || !errors.Is(err, panics.ErrPanicked) {
			t.Errorf("%s: got %v", name, err)
		}
		told(t, doing, "read the body of a request")
	}
	if got := s.Ejected(); len(got) != 0 {
		t.Errorf("ejected %v", got)
	}
}

// panicking is a body with a defect.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("a defect") }

// A panic must not be told as a failure of the endpoint.
func TestAPanicOfABodyIsNoFaultOfTheEndpoint(t *testing.T) {
	report, doing := reported()
	b := listen(t, func(conn *peer, _ int) { conn.head(); conn.untilClosed() })
	s := serving(t, Options{Panics: report, Ejection: Ejection{Failures: 1}}, b.address(), b.address())
	response, err := s.Do(t.Context(), post(panicking{}, -1))
	if err == nil {
		response.Close()
	}
	if KindOf(err) != RequestBody || !errors.Is(err, panics.ErrPanicked) {
		t.Errorf("got %v", err)
	}
	told(t, doing, "send the body of a request")
	s.Wait()
	if len(doing) != 0 || len(s.Ejected()) != 0 {
		t.Error("the endpoint is suspected")
	}
}

// A defect in what opens a connection is a failure of that connection. The endpoint does not count as one that hangs for ever.
func TestAPanicWhileAConnectionHangsLeavesNothing(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			dead, good := backendFor(t, name), backendFor(t, name)
			panicNow := make(chan struct{})
			dial := func(ctx context.Context, address string) (net.Conn, error) {
				if address == dead {
					<-panicNow
					panic("a defect")
				}
				return dialTCP(ctx, address)
			}
			reporter, doing := reported()
			s := serving(t, Options{Dial: dial, DialPatience: 10 * time.Millisecond, DialTimeout: time.Minute, Panics: reporter}, dead, good)
			eventually(t, "a connection hangs", func() bool {
				if reached, err := way(s); err != nil || reached != good {
					t.Fatalf("reached %q: %v", reached, err)
				}
				return s.at(dead).hanging.Load() > 0
			})
			close(panicNow)
			told(t, doing, "connect to an endpoint")
			eventually(t, "no connection hangs any more", func() bool { return s.at(dead).hanging.Load() == 0 && !s.at(dead).kept.Load() })
		})
	}
}
