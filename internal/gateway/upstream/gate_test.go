package upstream

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// holding answers one request for each value that the test sends.
func holding(t *testing.T) (b *backend, step chan struct{}) {
	step = make(chan struct{})
	b = listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			<-step
			p.send(okResponse)
		}
	})
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { close(step) }) })
	return b, step
}

// state returns the numbers of requests, of requests with a connection, of waiting
// requests, and of connections.
func (g *gate) state() [4]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return [4]int{g.requests.Taken(), g.exclusive.Taken(), len(g.waiting), g.conns}
}

func TestRequestsAboveTheConnectionsWaitInTurn(t *testing.T) {
	b, step := holding(t)
	s := serving(t, Options{}, b.address())
	s.SetLimits(model.Limits{Connections: 2, Pending: 3, Requests: 100})
	var wait sync.WaitGroup
	var order []int
	var mu sync.Mutex
	for i := range 5 {
		wait.Go(func() {
			if status, _ := fetch(t, s, get()); status != http.StatusOK {
				t.Errorf("got %d", status)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
		eventually(t, "the request is there", func() bool { return s.gate.state()[0] == i+1 })
	}
	eventually(t, "two have a connection", func() bool { return s.gate.state() == [4]int{5, 2, 3, 2} })
	_, err := s.Do(t.Context(), get())
	wantKind(t, err, MaxPending)
	for i := range 3 {
		step <- struct{}{}
		eventually(t, "the next one has its turn", func() bool { return s.gate.state() == [4]int{4 - i, 2, 2 - i, 2} })
	}
	step <- struct{}{}
	step <- struct{}{}
	wait.Wait()
	if got := s.gate.state(); got != [4]int{0, 0, 0, 2} || b.accepted.Load() != 2 || len(order) != 5 {
		t.Errorf("%v are left, %d connections were made, the order was %v", got, b.accepted.Load(), order)
	}
}

func TestTheWaitForAConnectionEnds(t *testing.T) {
	b, _ := holding(t)
	s := serving(t, Options{}, b.address())
	s.SetLimits(model.Limits{Connections: 1, Pending: 10})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		_, err := s.Do(ctx, get())
		wantKind(t, err, Canceled)
	})
	eventually(t, "the connection is taken", func() bool { return s.gate.state()[1] == 1 })
	late := get()
	late.Deadline = time.Now().Add(20 * time.Millisecond)
	_, err := s.Do(t.Context(), late)
	wantKind(t, err, Timeout)
	left, leave := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer leave()
	_, err = s.Do(left, get())
	wantKind(t, err, Canceled)
	if _, failure := s.gate.enter(t.Context(), pass{exclusive: true}, time.Millisecond); failure == nil || failure.Kind != MaxConnections {
		t.Errorf("got %v", failure)
	}
	cancel()
	wait.Wait()
	if got := s.gate.state(); got != [4]int{} {
		t.Errorf("%v are left", got)
	}
}

func TestAnIdleConnectionMakesRoomForOneToAnotherEndpoint(t *testing.T) {
	first, second := answering(t, okResponse), answering(t, okResponse)
	s := serving(t, Options{}, first.address(), second.address())
	s.SetLimits(model.Limits{Connections: 1, Pending: 10})
	for range 50 {
		fetch(t, s, get())
		if got := s.gate.state(); got[3] > 1 {
			t.Fatalf("%d connections", got[3])
		}
	}
	if first.accepted.Load() == 0 || second.accepted.Load() == 0 {
		t.Error("one endpoint got nothing")
	}
}

func TestRequestsOverHTTP2AreBoundedToo(t *testing.T) {
	hold := make(chan struct{})
	address := http2Backend(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	})
	s := serving(t, Options{}, address)
	s.SetLimits(model.Limits{Connections: 1, Requests: 3})
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			req := get()
			req.Protocol = HTTP2
			fetch(t, s, req)
		})
	}
	eventually(t, "three are under way", func() bool { return s.gate.state() == [4]int{3, 0, 0, 1} })
	req := get()
	req.Protocol = HTTP2
	_, err := s.Do(t.Context(), req)
	wantKind(t, err, MaxRequests)
	close(hold)
	wait.Wait()
	fetch(t, s, req)
}

func TestConnectionsOverHTTP2AreBounded(t *testing.T) {
	handler := func(http.ResponseWriter, *http.Request) {}
	s := serving(t, Options{}, http2Backend(t, handler), http2Backend(t, handler))
	s.SetLimits(model.Limits{Connections: 1})
	refused := 0
	for range 50 {
		req := get()
		req.Protocol = HTTP2
		response, err := s.Do(t.Context(), req)
		if err != nil {
			wantKind(t, err, MaxConnections)
			refused++
			continue
		}
		_, _ = readAll(response)
	}
	if got := s.gate.state(); refused == 0 || refused == 50 || got != [4]int{0, 0, 0, 1} || len(s.Ejected()) > 0 {
		t.Errorf("%d of 50 were refused, %v are left, ejected is %v", refused, got, s.Ejected())
	}
}

// The counts match the real requests and connections, whatever happens to requests.
func TestTheCountStaysTrue(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			switch rand.IntN(10) {
			case 0:
				return
			case 1:
				p.send("nonsense\r\n\r\n")
			case 2:
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
				return
			default:
				p.send(okResponse)
			}
		}
	})
	s := serving(t, Options{}, b.address(), refusing(t))
	s.SetLimits(model.Limits{Connections: 4, Pending: 20, Requests: 30})
	var wait sync.WaitGroup
	for range 40 {
		wait.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(20_000))*time.Microsecond)
				if response, err := s.Do(ctx, get()); err == nil {
					_, _ = io.Copy(io.Discard, response)
					response.Close()
				}
				cancel()
			}
		})
	}
	wait.Wait()
	s.Wait()
	if got, want := s.gate.state(), [4]int{0, 0, 0, idleConns(s)}; got != want {
		t.Errorf("left are %v, want %v", got, want)
	}
	s.Set(nil)
	if got := s.gate.state(); got != [4]int{} {
		t.Errorf("after the last endpoint: %v", got)
	}
}

// enterAll enters with a client's requests until one would have to wait. It returns how
// many entered.
func enterAll(t *testing.T, g *gate, p pass) (n int) {
	t.Helper()
	for {
		if _, failure := g.enter(t.Context(), p, 0); failure != nil {
			return n
		}
		n++
	}
}

func TestOneClientLeavesPartOfABackendToTheOthers(t *testing.T) {
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	tests := map[string]struct {
		limits    model.Limits
		exclusive bool
		want      [2]int
	}{
		"connections":                  {model.Limits{Connections: 40}, true, [2]int{30, 8}},
		"requests":                     {model.Limits{Requests: 40}, false, [2]int{30, 8}},
		"requests before connections":  {model.Limits{Connections: 400, Requests: 40}, true, [2]int{30, 8}},
		"no bound of connections":      {model.Limits{Requests: 8}, true, [2]int{6, 2}},
		"too small a bound to divide":  {model.Limits{Connections: 2}, true, [2]int{2, 0}},
		"connections before the bound": {model.Limits{Connections: 8, Requests: 1000}, true, [2]int{6, 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := &gate{limits: test.limits}
			got := [2]int{
				enterAll(t, g, pass{client: first, exclusive: test.exclusive}),
				enterAll(t, g, pass{client: second, exclusive: test.exclusive}),
			}
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// A client with slow requests has only its share of the connections and of the queue.
// Requests of another client pass its waiting ones.
func TestAClientGoesPastThoseThatWaitForTheirShare(t *testing.T) {
	greedy, other := pass{client: netip.MustParseAddr("192.0.2.1"), exclusive: true}, pass{client: netip.MustParseAddr("192.0.2.2"), exclusive: true}
	g := &gate{limits: model.Limits{Connections: 8, Pending: 4}}
	if n := enterAll(t, g, greedy); n != 6 {
		t.Fatalf("%d were let in", n)
	}
	var wait sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer wait.Wait()
	defer cancel()
	for range 3 {
		wait.Go(func() { _, _ = g.enter(ctx, greedy, time.Minute) })
	}
	eventually(t, "three wait", func() bool { return g.state()[2] == 3 })
	if _, failure := g.enter(t.Context(), greedy, time.Minute); failure == nil || failure.Kind != MaxPending {
		t.Errorf("the whole queue is one client's: %v", failure)
	}
	for range 2 {
		if _, failure := g.enter(t.Context(), other, 0); failure != nil {
			t.Errorf("another client finds no connection: %v", failure)
		}
	}
	let := make(chan *Error, 1)
	wait.Go(func() {
		waited, failure := g.enter(t.Context(), other, time.Minute)
		if !waited {
			t.Error("a request that waits is not told of")
		}
		let <- failure
	})
	eventually(t, "the other client waits too", func() bool { return g.state()[2] == 4 })
	g.leave(other)
	if failure := <-let; failure != nil {
		t.Errorf("its own place is not the other client's again: %v", failure)
	}
	if got := g.state(); got != [4]int{11, 8, 3, 0} {
		t.Errorf("got %v", got)
	}
	g.leave(greedy)
	if got := g.state(); got != [4]int{10, 7, 3, 0} {
		t.Errorf("who has most of the places got the one that is free: %v", got)
	}
	g.leave(other)
	g.leave(other)
	eventually(t, "the first that waits has a place", func() bool { return g.state() == [4]int{8, 6, 2, 0} })
}
