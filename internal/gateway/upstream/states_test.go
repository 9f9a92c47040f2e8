package upstream

import (
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

func TestStates(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	s := NewService(Options{Clock: clock, Ejection: Ejection{Failures: 1, Base: 10 * time.Second, Max: time.Minute, MaxPercent: 100}}, nil)
	want := func(when string, states States) {
		t.Helper()
		if got := s.States(); got != states {
			t.Errorf("%s: got %+v, want %+v", when, got, states)
		}
	}
	want("without endpoints", States{})
	s.Set([]string{"a", "b", "c", "d"})
	want("at first", States{Available: 4})
	all := *s.endpoints.Load()
	s.eject(all[0])
	s.eject(all[1])
	want("two are ejected", States{Available: 2, Ejected: 2})
	s.set.Lock()
	all[1].unhealthy, all[2].unhealthy = true, true
	s.set.Unlock()
	want("one of them and another are unhealthy", States{Available: 1, Ejected: 1, Unhealthy: 2})
	clock.Step(10 * time.Second)
	want("the ejection is over", States{Available: 2, Unhealthy: 2})
	s.Set([]string{"d"})
	want("the others are gone", States{Available: 1})
}
