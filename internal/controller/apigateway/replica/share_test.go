package replica

import (
	"context"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// The share of a namespace is used up by what was read, and there is one again after a time that depends on that.
func TestWhatANamespaceReadsComesOutOfItsShare(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1, 0))
	s := newShare(clock)
	s.take(bytesBurst + 3*bytesPerSecond)
	passed := make(chan bool)
	go func() { passed <- s.spend(t.Context(), askCost) }()
	waits := func() bool {
		for range 1000 {
			if clock.HasWaiters() {
				return true
			}
			<-time.After(time.Millisecond)
		}
		return false
	}
	if !waits() {
		t.Fatal("it does not wait")
	}
	clock.Step(2900 * time.Millisecond)
	select {
	case <-passed:
		t.Fatal("it waited less than 2.9 s")
	default:
	}
	clock.Step(200 * time.Millisecond)
	if !<-passed {
		t.Error("it gave up")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if s.take(2 * bytesBurst); s.spend(ended, askCost) {
		t.Error("it goes on after the end")
	}
	if s.read(ended) != nil {
		t.Error("it reads after the end")
	}
}

func TestANamespaceHasSoManyPlacesAndSoMuchMemory(t *testing.T) {
	s := newShare(testingclock.NewFakeClock(time.Unix(1, 0)))
	for i := range maxHeld {
		if !s.hold() {
			t.Fatalf("place %d is refused", i)
		}
	}
	if s.hold() {
		t.Error("there is one place too many")
	}
	if s.letGo(); !s.hold() {
		t.Error("the place that was given back is refused")
	}

	if !s.keep(0, maxKept) || s.keep(0, 1) {
		t.Error("the memory is another one than it should be")
	}
	if !s.keep(maxKept, maxKept-10) || !s.keep(0, 10) || s.keep(10, 11) || !s.keep(10, 10) {
		t.Error("what was given back is not there")
	}
}
