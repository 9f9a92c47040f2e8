package upstream

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

func TestAMalformedResponseEndsTheUseOfItsConnectionButNotTheOthersOnIt(t *testing.T) {
	finish := make(chan struct{})
	var writing sync.Mutex
	b := framesBackend(t, func(s *streamsOf, stream uint32, path string) {
		writing.Lock()
		defer writing.Unlock()
		switch path {
		case "/slow":
			s.head(stream, false, "200", "content-length", "4")
			_ = s.WriteData(stream, false, []byte("sl"))
			go func() {
				<-finish
				writing.Lock()
				defer writing.Unlock()
				_ = s.WriteData(stream, true, []byte("ow"))
			}()
		case "/split":
			s.head(stream, false, "200", "content-length", "97", "content-length", "2")
		default:
			s.head(stream, true, "200")
		}
	})
	s := serving(t, Options{}, b.address())
	ask := func(path string) *Request {
		req := getHTTP2()
		req.Target, req.Deadline = path, time.Now().Add(5*time.Second)
		return req
	}
	slow, err := s.Do(t.Context(), ask("/slow"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Do(t.Context(), ask("/split"))
	wantKind(t, err, Malformed)
	if n := b.accepted.Load(); n != 1 {
		t.Fatalf("%d connections, so nothing is shown", n)
	}
	if status, _ := fetch(t, s, ask("/")); status != 200 {
		t.Errorf("got %d", status)
	}
	if n := b.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want another one for the next request", n)
	}
	close(finish)
	if body, err := readAll(slow); body != "slow" || err != nil {
		t.Errorf("the request that was on the connection got %q, %v", body, err)
	}
	eventually(t, "the connection ends with its last request", func() bool { return b.open.Load() == 1 })
}

// limitedBackend allows so many requests on a connection. It answers one after a moment.
func limitedBackend(t *testing.T, streams uint32) *backend {
	return listen(t, func(p *peer, _ int) {
		server := &http2.Server{MaxConcurrentStreams: streams}
		server.ServeConn(p, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(10 * time.Millisecond)
			_, _ = io.WriteString(w, "ok")
		})})
	})
}

func TestMoreConnectionsAreOpenedThanTheEndpointAllowsRequests(t *testing.T) {
	b := limitedBackend(t, 2)
	s := serving(t, Options{}, b.address())
	var wait sync.WaitGroup
	for range 30 {
		wait.Go(func() {
			req := getHTTP2()
			req.Deadline = time.Now().Add(5 * time.Second)
			response, err := s.Do(t.Context(), req)
			if err != nil {
				t.Error(err)
				return
			}
			if body, err := readAll(response); body != "ok" || err != nil {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
	wait.Wait()
	if n := b.accepted.Load(); n < 2 || n > 30 {
		t.Errorf("%d connections", n)
	}
}

// rawHTTP2 sends bytes as soon as it is connected, and then closes the connection if it is to.
func rawHTTP2(t *testing.T, settings []http2.Setting, closes bool) *backend {
	return listen(t, func(p *peer, _ int) {
		_ = http2.NewFramer(p, p).WriteSettings(settings...)
		if !closes {
			p.untilClosed()
		}
	})
}

func TestAnEndpointThatTakesNoRequestsIsNotAskedForEver(t *testing.T) {
	for name, b := range map[string]*backend{
		"none at a time":     rawHTTP2(t, []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 0}}, false),
		"it closes at once":  listen(t, func(*peer, int) {}),
		"after its settings": rawHTTP2(t, nil, true),
	} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{}, b.address())
			for range 5 {
				req := getHTTP2()
				req.Deadline = time.Now().Add(5 * time.Second)
				_, err := s.Do(t.Context(), req)
				if kind := KindOf(err); kind != Connect && kind != Reset {
					t.Errorf("got %v", err)
				}
			}
			if n := b.accepted.Load(); n > 30 {
				t.Errorf("%d connections", n)
			}
			eventually(t, "no connection is left", func() bool { return b.open.Load() == 0 })
		})
	}
}

func TestAnEndpointWithoutSettingsIsAskedAfterAMoment(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		_, _ = io.ReadFull(p.in, make([]byte, len(http2.ClientPreface)))
		s := newStreams(p)
		for {
			frame, err := s.ReadFrame()
			if err != nil {
				return
			}
			if frame, ok := frame.(*http2.MetaHeadersFrame); ok {
				_ = s.WriteSettings()
				s.head(frame.StreamID, true, "200")
			}
		}
	})
	if status, _ := fetch(t, serving(t, Options{}, b.address()), getHTTP2()); status != 200 {
		t.Errorf("got %d", status)
	}
}

func TestALateConnectionOfARemovedEndpointIsClosed(t *testing.T) {
	b := listen(t, func(p *peer, _ int) { p.untilClosed() }) // never says what it takes
	s := serving(t, Options{}, b.address())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, getHTTP2())
		ended <- err
	}()
	eventually(t, "it is connected", func() bool { return b.open.Load() == 1 })
	cancel()
	wantKind(t, <-ended, Canceled)
	s.Set(nil)
	eventually(t, "the connection is closed", func() bool { return b.open.Load() == 0 })
}

// A response that fails may take its part of the connection's window with it. So a connection with many of them gets no further
// requests, long before its window is used up.
func TestAConnectionThatMayHaveLostItsWindowIsReplaced(t *testing.T) {
	b := framesBackend(t, func(s *streamsOf, stream uint32, path string) {
		if path == "/fail" {
			_ = s.WriteRSTStream(stream, http2.ErrCodeInternal)
			return
		}
		s.head(stream, true, "200")
	})
	s := serving(t, Options{Ejection: Ejection{Failures: 1 << 30}}, b.address())
	e := (*s.endpoints.Load())[0]
	for range maxLost/wideWindow + 1 {
		req := getHTTP2()
		req.Target, req.Deadline = "/fail", time.Now().Add(5*time.Second)
		if _, err := e.send(t.Context(), req, false); KindOf(err) != Reset {
			t.Fatalf("got %v", err)
		}
	}
	fetch(t, s, getHTTP2())
	if n := b.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestTheWindowsOfResponses(t *testing.T) {
	first := make(chan uint32, 10)
	b := listen(t, func(p *peer, _ int) {
		_, _ = io.ReadFull(p.in, make([]byte, len(http2.ClientPreface)))
		s := newStreams(p)
		_ = s.WriteSettings()
		for {
			frame, err := s.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if window, ok := frame.Value(http2.SettingInitialWindowSize); ok {
					first <- window
				}
			case *http2.MetaHeadersFrame:
				s.head(frame.StreamID, true, "200")
			}
		}
	})
	s := serving(t, Options{}, b.address())
	alone, err := s.Do(t.Context(), getHTTP2())
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	for range maxWide - 1 {
		s.windows.take(getHTTP2().Client)
	}
	busy, err := s.Do(t.Context(), getHTTP2())
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if got := []uint32{<-first, <-first}; !slices.Equal(got, []uint32{wideWindow, narrowWindow}) {
		t.Errorf("got %d", got)
	}
	if maxStreams*wideWindow+maxLost > connectionWindow {
		t.Error("responses that nobody takes can use up the window of their connection")
	}
}

// What the gateway opens for its own reasons takes no place from a request: whatever windows responses need, whatever connections
// are not used again, and in whatever order they come and go, an endpoint needs one place, and a request fails only if others have all.
func TestAnEndpointNeedsOnePlaceWhateverConnectionsItHas(t *testing.T) {
	const limit = 2
	var endpoints []*backend
	for range 3 {
		endpoints = append(endpoints, framesBackend(t, func(s *streamsOf, stream uint32, path string) {
			if path == "/malformed" {
				s.head(stream, false, "200", "content-length", "1", "content-length", "2")
				return
			}
			s.head(stream, false, "200") // and never ends
		}))
	}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 41))
		s := serving(t, Options{Ejection: Ejection{Failures: 1 << 30}}, endpoints[0].address(), endpoints[1].address(), endpoints[2].address())
		s.SetLimits(model.Limits{Connections: limit})
		open := map[*endpoint][]*Response{}
		for step := range 60 {
			e := (*s.endpoints.Load())[random.IntN(3)]
			if held := open[e]; len(held) > 0 && random.IntN(4) == 0 {
				held[0].Close()
				open[e] = held[1:]
				if len(open[e]) == 0 { // so that what comes next is known: no connection is left idle
					e.http2.drain()
					delete(open, e)
				}
				continue
			}
			req := getHTTP2()
			req.Deadline = time.Now().Add(5 * time.Second)
			malformed := len(open[e]) > 0 && random.IntN(4) == 0
			if malformed {
				req.Target = "/malformed"
			}
			narrow := random.IntN(2) == 0
			if narrow {
				s.windows = &windows{}
				for range maxWide {
					s.windows.take(netip.Addr{})
				}
			}
			response, err := e.send(t.Context(), req, false)
			s.windows = &windows{}
			switch want := len(open[e]) > 0 || len(open) < limit; {
			case malformed:
				wantKind(t, err, Malformed)
			case !want:
				wantKind(t, err, MaxConnections)
			case err != nil:
				t.Fatalf("seed %d, step %d, narrow %t: %v, though %d of %d endpoints have a connection", seed, step, narrow, err, len(open), limit)
			default:
				open[e] = append(open[e], response)
			}
		}
		for _, held := range open {
			for _, response := range held {
				response.Close()
			}
		}
		s.Set(nil)
		eventually(t, "no place is taken", func() bool { return s.gate.state() == [4]int{} })
	}
}

// Of responses that have no wide window, none comes on a connection with such windows, whatever the limit is.
func TestNoLimitWidensAWindow(t *testing.T) {
	s := serving(t, Options{}, http2Backend(t, nil))
	s.SetLimits(model.Limits{Connections: 1})
	fetch(t, s, getHTTP2())
	for range maxWide {
		s.windows.take(getHTTP2().Client)
	}
	response, err := s.Do(t.Context(), getHTTP2())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	if window := response.stream.(*http2Exchange).conn.window; window != narrowWindow {
		t.Errorf("a window of %d", window)
	}
}

func TestWideWindowsAreGivenBack(t *testing.T) {
	split := framesBackend(t, func(s *streamsOf, stream uint32, _ string) { s.head(stream, true, "200", "content-length", "x") })
	for name, address := range map[string]string{"a response": http2Backend(t, nil), "a refused response": split.address(), "no connection": "127.0.0.1:1"} {
		s := serving(t, Options{}, address)
		req := getHTTP2()
		response, err := s.Do(t.Context(), req)
		if err == nil {
			_, err = readAll(response)
		}
		if taken := s.windows.taken.Taken(); taken != 0 || (err != nil && errors.Is(err, context.Canceled)) {
			t.Errorf("%s: %d are taken, %v", name, taken, err)
		}
	}
}

// What ends a connection before the request that began to open it gets to run: other requests that have used it up, or the gateway, which
// closes idle connections. The endpoint was reached, so that is no failure to connect.
func TestARequestWhoseConnectionTheGatewayHasClosedOpensAnother(t *testing.T) {
	for name, used := range map[string]bool{"others have used it up": true, "nobody has used it": false} {
		t.Run(name, func(t *testing.T) {
			s := serving(t, Options{}, http2Backend(t, echoing))
			conns := (*s.endpoints.Load())[0].http2.(*http2Transport).conns[wide]
			spent, err := conns.get(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			conns.put(spent, false, false)
			if !spent.wire.ended() {
				t.Fatal("the connection is open, so nothing is shown")
			}
			connect, began := conns.connect, make(chan struct{})
			conns.connect = func(context.Context) (net.Conn, *http2Place, error) {
				conns.connect = connect
				close(began)
				runtime.Goexit() // the test opens it
				return nil, nil, nil
			}
			wait := make(chan error, 1)
			go func() {
				c, err := conns.get(t.Context(), 0)
				if err == nil {
					conns.put(c, false, true)
				}
				wait <- err
			}()
			<-began
			conns.mu.Lock()
			d := conns.dialing
			conns.dialing, d.conn, spent.used = nil, spent, used
			close(d.done)
			conns.mu.Unlock()
			if err := <-wait; err != nil {
				t.Error(err)
			}
		})
	}
}
