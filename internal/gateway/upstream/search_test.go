package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// hanging is a network in which connections to some addresses hang, until they are let through or the test ends.
type hanging struct {
	mu    sync.Mutex
	gates map[string]chan struct{} // closed: connections are let through
	dials map[string]int
	under atomic.Int64 // dials that hang now
	ended context.Context
}

func newHanging(t *testing.T, addresses ...string) *hanging {
	ended, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	n := &hanging{gates: map[string]chan struct{}{}, dials: map[string]int{}, ended: ended}
	for _, address := range addresses {
		n.gates[address] = make(chan struct{})
	}
	return n
}

func (n *hanging) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	gate := n.gates[address]
	n.dials[address]++
	n.mu.Unlock()
	if gate == nil {
		return dialTCP(ctx, address)
	}
	n.under.Add(1)
	defer n.under.Add(-1)
	select {
	case <-gate:
		return dialTCP(ctx, address)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.ended.Done():
		return nil, n.ended.Err()
	}
}

func (n *hanging) dialed(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[address]
}

// letThrough lets connections to an address through after some time.
func (n *hanging) letThrough(address string, after time.Duration) {
	time.AfterFunc(after, func() { close(n.gates[address]) })
}

func (s *Service) at(address string) *endpoint {
	all := *s.endpoints.Load()
	return all[slices.IndexFunc(all, func(e *endpoint) bool { return e.address == address })]
}

// ways are the ways to reach an endpoint. Each returns the address of the one that was reached.
func ways(t *testing.T) map[string]func(s *Service) (string, error) {
	send := func(of func() *Request) func(*Service) (string, error) {
		return func(s *Service) (string, error) {
			req := of()
			response, err := s.Do(t.Context(), req)
			if err != nil {
				return "", err
			}
			reached := response.Endpoint
			if _, err := readAll(response); err != nil {
				return "", err
			}
			if req.Resent() != 0 {
				t.Errorf("the request was sent %d times again", req.Resent())
			}
			return reached, nil
		}
	}
	upload := func() *Request { req, writer, _ := pipeBody(); go writer.Close(); return req }
	return map[string]func(*Service) (string, error){
		"POST over HTTP/1.1":   send(func() *Request { return post(strings.NewReader("body"), 4) }),
		"upload over HTTP/1.1": send(upload),
		"POST over HTTP/2":     send(func() *Request { req := post(strings.NewReader("body"), 4); req.Protocol = HTTP2; return req }),
		"upload over HTTP/2":   send(func() *Request { req := upload(); req.Protocol = HTTP2; return req }),
		"connection": func(s *Service) (string, error) {
			to, err := s.Connect(t.Context(), netip.Addr{})
			if err != nil {
				return "", err
			}
			defer to.Close()
			return to.Endpoint, nil
		},
	}
}

// backendFor returns the address of a backend for one of the ways.
func backendFor(t *testing.T, way string) string {
	if strings.Contains(way, "HTTP/2") {
		return http2Backend(t, nil)
	}
	return answeringBodies(t).address()
}

// answeringBodies reads the bodies of the requests, too.
func answeringBodies(t *testing.T) *backend {
	return listen(t, func(p *peer, _ int) {
		for {
			head := p.head()
			if head == "" {
				return
			}
			if strings.Contains(head, "chunked") {
				for line := ""; line != "0\r\n"; {
					var err error
					if line, err = p.in.ReadString('\n'); err != nil {
						return
					}
				}
				p.head()
			} else if strings.Contains(head, "Content-Length: 4") {
				_, _ = p.in.Discard(4)
			}
			p.send(okResponse)
		}
	})
}

// hang is longer than any busy machine takes, and half of what a connection may take that is not bounded by the test.
const hang = 30 * time.Second

func TestAnEndpointWhoseConnectionHangsIsLeft(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			dead, good := backendFor(t, name), backendFor(t, name)
			network := newHanging(t, dead)
			// On a busy machine, to connect to the endpoint that answers takes longer than the 10 ms of other tests.
			s := serving(t, Options{Dial: network.dial, DialPatience: 200 * time.Millisecond, DialTimeout: time.Minute}, dead, good)
			for range 30 {
				began := time.Now()
				reached, err := way(s)
				if err != nil || reached != good {
					t.Fatalf("reached %q: %v", reached, err)
				}
				if took := time.Since(began); took > hang {
					t.Errorf("it took %v", took)
				}
			}
			if n := network.dialed(dead); n != 1 {
				t.Errorf("%d connections were begun", n)
			}
			if s.budget.left != maxBudget || s.at(dead).failures.Load() != 0 {
				t.Errorf("%v is left of the budget, and %d failures count", s.budget.left, s.at(dead).failures.Load())
			}
			if n := s.Busy(); n != 0 {
				t.Errorf("%d requests are in flight", n)
			}

			network.letThrough(dead, 0)
			eventually(t, "the endpoint is used again", func() bool {
				reached, err := way(s)
				return err == nil && reached == dead
			})
			if n := network.dialed(dead); name != "connection" && n != 1 {
				t.Errorf("%d connections were begun, though there was one", n)
			}
		})
	}
}

func TestEveryConnectionHangs(t *testing.T) {
	for name, way := range ways(t) {
		t.Run(name, func(t *testing.T) {
			addresses := []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"}
			network := newHanging(t, addresses...)
			const bound = 200 * time.Millisecond
			s := serving(t, Options{
				Dial: network.dial, DialPatience: 10 * time.Millisecond, DialTimeout: bound, Ejection: Ejection{Failures: 1 << 20, Unreachable: 1 << 20},
			}, addresses...)
			began := time.Now()
			_, err := way(s)
			wantKind(t, err, Connect)
			if failure, _ := errors.AsType[*Error](err); !failure.Unreachable() {
				t.Error("it does not say that the endpoint cannot be reached")
			}
			if took := time.Since(began); took < bound || took > hang {
				t.Errorf("it took %v", took)
			}
			eventually(t, "the failure of each endpoint counts", func() bool {
				return !slices.ContainsFunc(addresses, func(address string) bool { return s.at(address).unreachable.Load() == 0 })
			})
			eventually(t, "no connection hangs any more", func() bool {
				return !slices.ContainsFunc(addresses, func(address string) bool { return s.at(address).hanging.Load() != 0 })
			})
		})
	}
}

// Endpoints that are far away work, though no connection is there when a request goes on.
func TestSlowEndpointsWork(t *testing.T) {
	for name, way := range ways(t) {
		for _, count := range []int{1, 2} {
			var addresses []string
			for range count {
				addresses = append(addresses, backendFor(t, name))
			}
			network := newHanging(t, addresses...)
			s := serving(t, Options{Dial: network.dial, DialPatience: 5 * time.Millisecond}, addresses...)
			for _, address := range addresses {
				network.letThrough(address, 80*time.Millisecond)
			}
			var wait sync.WaitGroup
			for range 8 {
				wait.Go(func() {
					if _, err := way(s); err != nil {
						t.Errorf("%s, %d endpoints: %v", name, count, err)
					}
				})
			}
			wait.Wait()
		}
	}
}

// An endpoint that is slow is better than one that refuses connections.
func TestASlowEndpointBesideOneThatRefuses(t *testing.T) {
	for name, way := range ways(t) {
		slow := backendFor(t, name)
		network := newHanging(t, slow)
		s := serving(t, Options{Dial: network.dial, DialPatience: 5 * time.Millisecond}, slow, refusing(t))
		network.letThrough(slow, 50*time.Millisecond)
		refused := 0
		for reached := ""; reached != slow; {
			var err error
			if reached, err = way(s); err != nil {
				wantKind(t, err, Connect) // it was the first one
				if refused++; !errors.Is(err, syscall.ECONNREFUSED) || refused > 100 {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
}

// The connections of many requests hang at once. One for each endpoint goes on, and none takes a place.
func TestConnectionsThatHangAreBounded(t *testing.T) {
	dead, good := answeringBodies(t), answeringBodies(t)
	network := newHanging(t, dead.address())
	s := serving(t, Options{Dial: network.dial, DialPatience: 50 * time.Millisecond, DialTimeout: time.Minute}, dead.address(), good.address())
	s.SetLimits(model.Limits{Connections: 20, Pending: 20})
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			response, err := s.Do(t.Context(), get())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = readAll(response)
		})
	}
	wait.Wait()
	if network.dialed(dead.address()) == 0 {
		t.Fatal("no connection has hung")
	}
	eventually(t, "one connection goes on", func() bool { return network.under.Load() == 1 })
	conns := func() int {
		s.gate.mu.Lock()
		defer s.gate.mu.Unlock()
		return s.gate.conns
	}
	eventually(t, "the others take no place", func() bool { return conns() == int(good.open.Load()) })
	s.SetLimits(model.Limits{Connections: conns(), Pending: 20})
	network.letThrough(dead.address(), 0)
	eventually(t, "the connection is closed, because there is no place for it", func() bool {
		return dead.accepted.Load() == 1 && dead.open.Load() == 0
	})
	if n := s.at(dead.address()).hanging.Load(); n != 0 || s.at(dead.address()).kept.Load() {
		t.Errorf("%d connections hang", n)
	}
}

// A client cannot leave connections behind.
func TestARequestThatLeavesEndsItsConnection(t *testing.T) {
	network := newHanging(t, "192.0.2.1:1", "192.0.2.2:1")
	s := serving(t, Options{Dial: network.dial, DialPatience: time.Minute, DialTimeout: time.Hour}, "192.0.2.1:1", "192.0.2.2:1")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := s.Do(ctx, get())
	wantKind(t, err, Canceled)
	req := get()
	req.Deadline = time.Now().Add(20 * time.Millisecond)
	_, err = s.Do(t.Context(), req)
	wantKind(t, err, Timeout)
	eventually(t, "no connection is being opened", func() bool { return network.under.Load() == 0 })
}

func TestAffinityToAnEndpointWhoseConnectionHangs(t *testing.T) {
	s := serving(t, Options{}, "a:1", "b:1")
	s.SetKey([]byte("key"), "service")
	a, b := s.at("a:1"), s.at("b:1")
	for name, affinity := range map[string]Affinity{
		"place": {Place: *a.place.Load()},
		"hash":  {Hash: hashFor(s, a), Hashed: true},
	} {
		for _, test := range []struct {
			of   string
			hang []*endpoint
			want *endpoint
		}{
			{"none hangs", nil, a},
			{"its own hangs", []*endpoint{a}, b},
			{"the other hangs", []*endpoint{b}, a},
			{"all hang", []*endpoint{a, b}, a},
		} {
			for _, e := range test.hang {
				e.hanging.Add(1)
			}
			req := &Request{Affinity: affinity}
			for range 10 {
				if got := s.choose(req, nil); got != test.want {
					t.Errorf("%s: %s: got %s", name, test.of, got.address)
				}
			}
			for _, e := range test.hang {
				e.hanging.Add(-1)
			}
		}
	}
}

// hashFor returns a hash that leads to an endpoint.
func hashFor(s *Service, e *endpoint) uint64 {
	hash := uint64(0)
	for s.places.Load().highest(hash, func(*endpoint) bool { return true }) != e {
		hash++
	}
	return hash
}
