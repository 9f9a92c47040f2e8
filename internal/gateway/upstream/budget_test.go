package upstream

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const unavailable = "HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n"

// counting answers 503 and counts the requests.
func counting(t *testing.T, sent *atomic.Int64) *backend {
	return listen(t, func(p *peer, _ int) {
		for p.head() != "" {
			sent.Add(1)
			p.send(unavailable)
		}
	})
}

func TestAServiceThatFailsIsNotStormed(t *testing.T) {
	var sent atomic.Int64
	clock := testingclock.NewFakeClock(time.Now())
	s := serving(t, Options{Clock: clock, Backoff: Backoff{Base: 1, Max: 1}}, counting(t, &sent).address())
	ask := func(requests int64) (retries int64) {
		before, exhausted, resent := sent.Load(), int64(0), 0
		for range requests {
			req := get()
			req.Retry = Retry{Attempts: 10, On: model.OnStatus503}
			if status, _ := fetch(t, s, req); status != http.StatusServiceUnavailable {
				t.Fatalf("got %d", status)
			}
			resent += req.Resent()
			if req.BudgetExhausted() {
				exhausted++
			}
		}
		retries = sent.Load() - before - requests
		// A request is retried at most ten times.
		if int64(resent) != retries || exhausted < requests-retries/10 {
			t.Errorf("%d retries; the requests say %d, and that there were no more for %d of %d", retries, resent, exhausted, requests)
		}
		return retries
	}
	wantRetries := func(what string, got, want int64) {
		t.Helper()
		if got < want-1 || got > want {
			t.Errorf("%s: %d retries, want %d", what, got, want)
		}
	}
	wantRetries("what was saved up, and one for five", ask(1000), 100+200)
	wantRetries("one for five", ask(100), 20)
	clock.Step(3 * time.Second)
	wantRetries("ten for each second more", ask(100), 20+30)
	clock.Step(time.Hour)
	wantRetries("what can be saved up", ask(10), 100)
}

func TestEndpointsThatCannotBeReachedAreOutsideOfTheBudget(t *testing.T) {
	s := serving(t, Options{Ejection: Ejection{Failures: 1 << 20}}, refusing(t), refusing(t), answering(t, okResponse).address())
	for range 500 {
		req := get()
		req.Retry = Retry{Attempts: 2, On: model.OnConnectFailure}
		if status, _ := fetch(t, s, req); status != http.StatusOK {
			t.Fatalf("got %d", status)
		}
	}
}

func TestPausesBetweenAttemptsGrow(t *testing.T) {
	s := serving(t, Options{Backoff: Backoff{Base: 10 * time.Millisecond, Max: 50 * time.Millisecond}}, "192.0.2.1:80", "192.0.2.2:80")
	for retries, longest := range []time.Duration{10, 20, 40, 50, 50} {
		longest *= time.Millisecond
		seen := map[time.Duration]bool{}
		for range 100 {
			pause := s.pause(nil, retries, 0)
			if pause < longest/2 || pause > longest {
				t.Errorf("retry %d waits for %v", retries, pause)
			}
			seen[pause] = true
		}
		if len(seen) < 10 {
			t.Errorf("retry %d: all wait for the same time", retries)
		}
	}
	unreachable := &Error{Kind: Connect}
	if s.pause(unreachable, 0, 0) != 0 || s.pause(unreachable, 1, 1) == 0 {
		t.Error("only an endpoint that was not tried is tried at once")
	}
	if pause := s.pause(nil, 100, 0); pause < 25*time.Millisecond {
		t.Errorf("after many retries: %v", pause)
	}
}

func TestNobodyWaitsForAnAttemptInVain(t *testing.T) {
	var sent atomic.Int64
	s := serving(t, Options{Backoff: Backoff{Base: time.Hour, Max: time.Hour}}, counting(t, &sent).address())
	req := get()
	req.Retry = Retry{Attempts: 3, On: model.OnStatus503}
	req.Deadline = time.Now().Add(time.Minute)
	if status, _ := fetch(t, s, req); status != http.StatusServiceUnavailable {
		t.Errorf("got %d", status)
	}
	req = get()
	req.Retry = Retry{Attempts: 3, On: model.OnStatus503}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Do(ctx, req)
		done <- err
	}()
	eventually(t, "another attempt is decided on", func() bool {
		s.budget.mu.Lock()
		defer s.budget.mu.Unlock()
		return s.budget.counted > 0
	})
	cancel()
	wantKind(t, <-done, Canceled)
	if n := sent.Load(); n != 2 {
		t.Errorf("sent %d times", n)
	}
}
