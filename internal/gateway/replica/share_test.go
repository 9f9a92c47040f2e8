package replica

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
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

// A pod whose document has no room is no pod of another release. What it said before stays, and its next document is kept once there
// is room.
func TestAPodWhoseDocumentHasNoRoomIsNamedAsThat(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1, 0))
	s := newShare(clock)
	first, second := &document.Document{Generation: 1}, &document.Document{Generation: 2, Routes: make([]string, 10_000)}
	o := &follower{clock: clock, share: s, changed: func() {}}
	o.set(Answer{State: Answering, Document: first})
	others := maxKept - first.Memory()
	s.keep(0, others)
	for _, step := range []struct {
		name string
		does func()
		want Answer
	}{
		{"no room", func() {}, Answer{State: Crowded, Document: first, Detail: noRoom}},
		{"room again", func() { s.keep(others, 0) }, Answer{State: Answering, Document: second}},
	} {
		step.does()
		if o.set(Answer{State: Answering, Document: second}); !cmp.Equal(o.answer, step.want) {
			t.Errorf("%s: %s", step.name, cmp.Diff(step.want, o.answer))
		}
	}
	if text := fmt.Sprintf("%d MiB", maxKept>>20); !strings.Contains(noRoom, text) {
		t.Errorf("%q does not say %s", noRoom, text)
	}
}
