package upstream

import (
	"context"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
)

func idleConns(s *Service) int {
	n := 0
	for _, e := range *s.endpoints.Load() {
		pool := e.http1.(*pool)
		pool.mu.Lock()
		n += len(pool.idle)
		pool.mu.Unlock()
	}
	return n
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	b := answering(t, okResponse)
	s := serving(t, Options{MaxIdle: 3}, b.address())
	responses := make([]*Response, 10)
	for i := range responses {
		var err error
		if responses[i], err = s.Do(t.Context(), get()); err != nil {
			t.Fatal(err)
		}
	}
	for _, response := range responses {
		_, _ = readAll(response)
	}
	if n := idleConns(s); n != 3 {
		t.Errorf("%d idle connections, want 3", n)
	}
	eventually(t, "the others are closed", func() bool { return b.open.Load() == 3 })
}

func TestIdleConnectionsGrowOld(t *testing.T) {
	b := answering(t, okResponse)
	clock := testingclock.NewFakeClock(time.Now())
	s := serving(t, Options{Clock: clock, IdleTimeout: time.Minute}, b.address())
	fetch(t, s, get())
	clock.Step(59 * time.Second)
	s.Tidy()
	fetch(t, s, get())
	if n := b.accepted.Load(); n != 1 {
		t.Fatalf("%d connections within the idle timeout", n)
	}
	clock.Step(60 * time.Second)
	fetch(t, s, get())
	if n := b.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want a second after the idle timeout", n)
	}
	clock.Step(60 * time.Second)
	s.Tidy()
	eventually(t, "nothing is open", func() bool { return b.open.Load() == 0 })
}

func TestTidyClosesWhatTheEndpointClosed(t *testing.T) {
	b := listen(t, func(p *peer, _ int) {
		p.head()
		p.send(okResponse)
	})
	s := serving(t, Options{}, b.address())
	fetch(t, s, get())
	eventually(t, "the idle connection is gone", func() bool {
		s.Tidy()
		return idleConns(s) == 0
	})
}

func TestUnsolicitedBytesAreNotTakenForAResponse(t *testing.T) {
	b := listen(t, func(p *peer, number int) {
		for p.head() != "" {
			p.send(okResponse)
			if number == 1 {
				<-time.After(5 * time.Millisecond)
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			}
		}
	})
	s := serving(t, Options{}, b.address())
	fetch(t, s, get())
	eventually(t, "the bytes are there", func() bool { return idleIsDead(s) })
	if _, body := fetch(t, s, get()); body != "ok" {
		t.Errorf("got %q", body)
	}
}

func TestSetKeepsWhatStaysAndDrainsWhatGoes(t *testing.T) {
	more := make(chan struct{})
	slow := listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nok")
			<-more
			p.send("ay")
		}
	})
	stays := answering(t, okResponse)
	s := serving(t, Options{}, slow.address())
	response, err := s.Do(t.Context(), get())
	if err != nil {
		t.Fatal(err)
	}
	s.Set([]string{stays.address()})
	fetch(t, s, get())
	s.Set([]string{"127.0.0.1:1", stays.address(), stays.address()})
	s.Set([]string{stays.address()})
	fetch(t, s, get())
	if n := stays.accepted.Load(); n != 1 {
		t.Errorf("%d connections to what stayed", n)
	}
	if n := slow.open.Load(); n != 1 {
		t.Fatalf("%d connections to what goes, while a request is under way", n)
	}
	close(more)
	if body, err := readAll(response); body != "okay" || err != nil {
		t.Errorf("the request under way got %q, %v", body, err)
	}
	eventually(t, "the connection to what went is closed", func() bool { return slow.open.Load() == 0 })
}

func TestSetUnderLoadLosesNothing(t *testing.T) {
	addresses := []string{answering(t, okResponse).address(), answering(t, okResponse).address(), answering(t, okResponse).address()}
	s := serving(t, Options{}, addresses...)
	done := make(chan struct{})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				req := get()
				if i%2 == 0 {
					req = post(nil, 0)
				}
				if status, body := fetch(t, s, req); status != 200 || body != "ok" {
					t.Errorf("got %d %q", status, body)
				}
			}
		})
	}
	for i := range 300 {
		s.Set(append([]string{addresses[i%3]}, addresses[i%2:1+i%2]...))
	}
	close(done)
	wait.Wait()
}

func TestLeastLoadedOfTwo(t *testing.T) {
	s := NewService(Options{}, nil)
	s.Set([]string{"a", "b", "c"})
	all := *s.endpoints.Load()
	all[0].inFlight.Add(2)
	all[1].inFlight.Add(1)
	counts := map[*endpoint]int{}
	for range 3000 {
		counts[s.pick(nil)]++
	}
	// The first endpoint has the most load, so it is never picked. The second is picked
	// only in the pair with the first, which is one of three pairs.
	if counts[all[0]] != 0 || counts[all[1]] < 850 || counts[all[1]] > 1150 {
		t.Errorf("got %d, %d and %d of 3000", counts[all[0]], counts[all[1]], counts[all[2]])
	}
}

func TestEveryEndpointGetsItsShare(t *testing.T) {
	s := NewService(Options{}, nil)
	addresses := make([]string, 10)
	for i := range addresses {
		addresses[i] = strconv.Itoa(i)
	}
	s.Set(addresses)
	counts := map[string]int{}
	for range 10000 {
		counts[s.pick(nil).address]++
	}
	for _, address := range addresses {
		if n := counts[address]; n < 800 || n > 1200 {
			t.Errorf("endpoint %s got %d of 10000", address, n)
		}
	}
}

func TestEjection(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	refuse := func(context.Context, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	s := NewService(Options{Clock: clock, Dial: refuse, Ejection: Ejection{Failures: 3, Base: 10 * time.Second, Max: 35 * time.Second, MaxPercent: 50}}, nil)
	s.Set([]string{"a", "b", "c", "d"})
	all := *s.endpoints.Load()
	fail := func(e *endpoint, times int) {
		for range times {
			s.suspect(t.Context(), e, false)
		}
		s.asking.Wait()
	}
	want := func(when string, addresses ...string) {
		t.Helper()
		if diff := cmp.Diff(addresses, s.Ejected()); diff != "" {
			t.Errorf("%s: ejected: -want +got:\n%s", when, diff)
		}
	}
	fail(all[0], 2)
	s.succeeded(all[0])
	fail(all[0], 2)
	want("never three in a row")
	fail(all[0], 1)
	want("three in a row", "a")
	for range 200 {
		if s.pick(nil) == all[0] {
			t.Fatal("an ejected endpoint was picked")
		}
	}
	s.succeeded(all[0])
	want("after the answer to an old request", "a")
	fail(all[1], 3)
	fail(all[2], 3)
	want("half is the most", "a", "b")
	clock.Step(10 * time.Second)
	want("after the time")
	fail(all[0], 1)
	want("a failure right after coming back", "a")
	clock.Step(19 * time.Second)
	want("twice the time is not over", "a")
	clock.Step(time.Second)
	fail(all[0], 1)
	clock.Step(34 * time.Second)
	want("the time has an upper bound", "a")
	clock.Step(time.Second)
	want("which is over")
	s.succeeded(all[0])
	s.succeeded(all[1])
	fail(all[0], 1)
	want("a success ends the suspicion")
	if s.ejector.any.Load() {
		t.Error("the clock is still looked at")
	}
}

func TestAnUnreachableEndpointIsEjectedAfterTwoFailures(t *testing.T) {
	refuse := func(context.Context, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	for name, test := range map[string]struct {
		failures []bool // whether there was no connection
		ejected  bool
	}{
		"once":                       {[]bool{true}, false},
		"twice":                      {[]bool{true, true}, true},
		"with an answer in between":  {[]bool{true, false, true}, false},
		"answers that are failures":  {[]bool{false, false, false, false}, false},
		"five failures of any kinds": {[]bool{true, false, true, false, false}, true},
	} {
		s := NewService(Options{Dial: refuse}, nil)
		s.Set([]string{"a", "b"})
		for _, unreachable := range test.failures {
			s.suspect(t.Context(), (*s.endpoints.Load())[0], unreachable)
		}
		s.asking.Wait()
		if got := len(s.Ejected()) == 1; got != test.ejected {
			t.Errorf("%s: ejected: %t", name, got)
		}
	}
}

func TestTheLastEndpointIsNeverEjected(t *testing.T) {
	for count := 1; count <= 4; count++ {
		s := NewService(Options{Ejection: Ejection{Failures: 1, MaxPercent: 100}}, nil)
		s.Set([]string{"a", "b", "c", "d"}[:count])
		for _, e := range *s.endpoints.Load() {
			s.eject(e)
		}
		if n := len(s.Ejected()); n != count-1 {
			t.Errorf("%d of %d ejected", n, count)
		}
	}
	s := NewService(Options{Ejection: Ejection{Failures: 1}}, nil)
	s.Set([]string{"a", "b"})
	bad := (*s.endpoints.Load())[0]
	s.eject(bad)
	s.Set([]string{"a"})
	if s.pick(nil) != bad {
		t.Error("with nothing else left, an ejected endpoint is better than none")
	}
}

func TestFailingEndpointIsLeftOut(t *testing.T) {
	for name, response := range map[string]string{
		"resets":         "",
		"malformed":      "abc\r\n\r\n",
		"gateway errors": "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			bad := listen(t, func(p *peer, _ int) {
				p.head()
				p.send(response)
			})
			s := serving(t, Options{}, bad.address(), answering(t, okResponse).address())
			failures := 0
			for range 1000 {
				response, err := s.Do(t.Context(), get())
				if err != nil {
					failures++
					continue
				}
				if response.Status != 200 {
					failures++
				}
				_, _ = readAll(response)
			}
			// Five failures are needed, and more come while the gateway sends its own
			// request.
			if failures < 5 || failures > 100 || len(s.Ejected()) != 1 {
				t.Errorf("%d requests failed, ejected is %v", failures, s.Ejected())
			}
		})
	}
}

func TestErrorsOfTheApplicationDoNotEject(t *testing.T) {
	s := serving(t, Options{Ejection: Ejection{Failures: 1}},
		answering(t, "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n").address(), answering(t, okResponse).address())
	for range 50 {
		fetch(t, s, get())
	}
	if got := s.Ejected(); len(got) != 0 {
		t.Errorf("ejected %v", got)
	}
}

func TestRegistryKeepsServicesByKey(t *testing.T) {
	b := answering(t, okResponse)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewRegistry(Options{Clock: clock})
	s := r.Service("a:80", nil)
	s.Set([]string{b.address()})
	fetch(t, s, get())
	r.Service("b:80", nil)
	if r.Service("a:80", nil) != s {
		t.Error("another Service for the same key")
	}
	r.Keep(func(key string) bool { return key == "b:80" })
	eventually(t, "the idle connection is closed", func() bool { return b.open.Load() == 0 })
	fetch(t, s, get()) // a caller still holds the dropped Service
	eventually(t, "and leaves nothing behind", func() bool { return b.open.Load() == 0 })
	if r.Service("a:80", nil) == s {
		t.Error("a dropped Service came back")
	}
}

func TestRegistryTidies(t *testing.T) {
	b := answering(t, okResponse)
	clock := testingclock.NewFakeClock(time.Now())
	r := NewRegistry(Options{Clock: clock})
	s := r.Service("a:80", nil)
	s.Set([]string{b.address()})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() { r.Run(ctx, clock) })
	response, err := s.Do(t.Context(), get())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response)
	response.Close()
	eventually(t, "the ticker runs", clock.HasWaiters)
	clock.Step(2 * time.Minute)
	eventually(t, "the idle connection is closed", func() bool { return b.open.Load() == 0 })
}
