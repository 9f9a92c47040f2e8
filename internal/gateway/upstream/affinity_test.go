package upstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/rendezvous"
)

var testKey = []byte("key of the test")

// many returns a Service with endpoints that nobody asks.
func many(t testing.TB, n int) *Service {
	t.Helper()
	s := NewService(Options{}, nil)
	s.SetKey(testKey, "app:80")
	s.Set(numbered(n))
	return s
}

func numbered(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("10.0.%d.%d:80", i/250, i%250))
	}
	return list
}

// hashed is a request of a client that is known by a hash.
func hashed(client int) *Request {
	return &Request{Affinity: Affinity{Hash: rendezvous.Hash(fmt.Sprint("client-", client)), Hashed: true}}
}

// placed returns the endpoints that clients get.
func placed(s *Service, clients int) []string {
	out := make([]string, clients)
	for i := range out {
		out[i] = s.choose(hashed(i), nil).address
	}
	return out
}

func TestOnlyTheShareOfAnEndpointMoves(t *testing.T) {
	const clients = 20_000
	for _, n := range []int{3, 10, 100} {
		s := many(t, n)
		before := placed(s, clients)
		all := numbered(n)
		gone := all[n/2]
		s.Set(append(append([]string{}, all[:n/2]...), all[n/2+1:]...))
		after := placed(s, clients)
		moved := 0
		for i := range before {
			switch {
			case before[i] == gone:
				moved++
			case before[i] != after[i]:
				t.Fatalf("%d endpoints: client %d went from %s to %s, although %s is gone", n, i, before[i], after[i], gone)
			}
		}
		if want := clients / n; moved < want*8/10 || moved > want*12/10 {
			t.Errorf("%d endpoints: %d of %d clients moved, want about %d", n, moved, clients, want)
		}
		t.Logf("%d endpoints: %.2f %% of the clients moved, the least is %.2f %%", n, float64(moved)*100/clients, 100/float64(n))
		s.Set(all)
		for i, address := range placed(s, clients) {
			if address != before[i] {
				t.Fatalf("%d endpoints: client %d did not come back to %s", n, i, before[i])
			}
		}
	}
}

// Each replica has its endpoints from another watch, in another order, with another history.
func TestEveryReplicaChoosesAlike(t *testing.T) {
	one, other := many(t, 20), NewService(Options{}, nil)
	other.Set(numbered(25))
	other.SetKey(testKey, "app:80")
	other.Set(nil)
	other.Set(numbered(20))
	for i, address := range placed(one, 1000) {
		if got := other.choose(hashed(i), nil).address; got != address {
			t.Fatalf("client %d gets %s from one and %s from the other", i, address, got)
		}
	}
	for _, e := range *one.endpoints.Load() {
		if place := *e.place.Load(); !other.Has(place) || place == PlaceOf([]byte("another key"), "app:80", e.address) || place == PlaceOf(testKey, "app:81", e.address) {
			t.Fatalf("the place %v of %s is not known to the other, or does not depend on the key and the Service", place, e.address)
		}
	}
}

func TestAffinityGivesWay(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	s := NewService(Options{Clock: clock, Ejection: Ejection{MaxPercent: 100}}, nil)
	s.SetKey(testKey, "app:80")
	s.Set(numbered(3))
	all := *s.endpoints.Load()
	requests := map[string]func(e *endpoint) *Request{
		"place": func(e *endpoint) *Request { return &Request{Affinity: Affinity{Place: *e.place.Load()}} },
		"hash": func(e *endpoint) *Request {
			for i := 0; ; i++ {
				if s.choose(hashed(i), nil) == e {
					return hashed(i)
				}
			}
		},
	}
	for name, of := range requests {
		t.Run(name, func(t *testing.T) {
			first := all[1]
			req := of(first)
			if got := s.choose(req, nil); got != first {
				t.Fatalf("it got %s", got.address)
			}
			second := s.choose(req, []*endpoint{first})
			if second == first {
				t.Error("the endpoint that has failed for the request is tried again")
			}
			if third := s.choose(req, []*endpoint{first, second}); third == first || third == second {
				t.Error("an endpoint is tried twice although there is a third one")
			}
			s.eject(first)
			if got := s.choose(req, nil); got == first || s.Has(*first.place.Load()) {
				t.Error("it gets the ejected endpoint")
			}
			s.eject(all[0])
			s.eject(all[2]) // would be the last one
			if got := s.choose(req, nil); got != all[2] {
				t.Errorf("it got %s, and not the last endpoint", got.address)
			}
			clock.Step(time.Hour)
			if got := s.choose(req, nil); got != first {
				t.Error("it does not come back when the ejection ends")
			}
			for _, e := range all {
				s.succeeded(e)
			}
			s.set.Lock()
			first.unhealthy = true
			s.findEligible()
			s.set.Unlock()
			if got := s.choose(req, nil); got == first {
				t.Error("it gets the unhealthy endpoint")
			}
			s.set.Lock()
			first.unhealthy = false
			s.findEligible()
			s.set.Unlock()
		})
	}
}

func TestWithoutAKeyAffinityIsNotFollowed(t *testing.T) {
	s := many(t, 5)
	place := *(*s.endpoints.Load())[0].place.Load()
	s.SetKey(nil, "")
	if s.Has(place) || s.choose(&Request{Affinity: Affinity{Place: place}}, nil) == nil {
		t.Error("a place counts without a key, or keeps requests away")
	}
	s.SetKey([]byte("another key"), "app:80")
	if s.Has(place) {
		t.Error("a place of the old key counts")
	}
}

// The response says who has answered, also after the first endpoint could not be reached.
func TestTheResponseNamesItsEndpoint(t *testing.T) {
	good := answering(t, okResponse)
	gone := listen(t, func(*peer, int) {})
	gone.listener.Close()
	s := NewService(Options{}, nil)
	s.SetKey(testKey, "app:80")
	s.Set([]string{good.address(), gone.address()})
	t.Cleanup(func() { s.Set(nil) })
	req := get()
	req.Retry = Retry{Attempts: 1, On: model.OnConnectFailure}
	req.Affinity.Place = PlaceOf(testKey, "app:80", gone.address())
	response, err := s.Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Place(); got != PlaceOf(testKey, "app:80", good.address()) {
		t.Errorf("the answer is of %v", got)
	}
	_, _ = readAll(response)
	s.Wait()
}

func BenchmarkPickByLoad(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, req := many(b, n), get()
			b.ReportAllocs()
			for b.Loop() {
				s.choose(req, nil)
			}
		})
	}
}

func BenchmarkPickByHash(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, value := many(b, n), strings.Repeat("x", 32)
			req := get()
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				req.Affinity = Affinity{Hash: rendezvous.Hash(value) + i, Hashed: true}
				s.choose(req, nil)
			}
		})
	}
}

func BenchmarkPickByPlace(b *testing.B) {
	for _, n := range []int{3, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, req := many(b, n), get()
			req.Affinity.Place = *(*s.endpoints.Load())[n/2].place.Load()
			b.ReportAllocs()
			for b.Loop() {
				s.choose(req, nil)
			}
		})
	}
}
