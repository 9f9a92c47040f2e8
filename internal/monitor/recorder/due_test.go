package recorder

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// reported is an observer that passes on what it is told.
type reported chan Change

func (o reported) Observe(_ context.Context, c Change) Effects {
	o <- c
	return Effects{}
}

// What says no more than that it is not ready is Failed when it has been so for long enough, though nobody writes it.
func TestTimeAloneMakesAnObjectFailed(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(begun)
	seen := make(reported, 10)
	s := begin(t, widgets, func(o *Options) { o.Clock, o.Observer = clock, seen })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.r.Run(ctx)
	}()
	defer func() { stop(); <-done }()
	s.event(supervisor.Added, typed("2", `"status":{"conditions":[{"type":"Ready","status":"False","reason":"Foo","lastTransitionTime":"2026-11-25T11:55:00Z"}]}`))
	first := <-seen
	if first.Health.State != health.Progressing || !first.Health.Due.Equal(begun.Add(5*time.Minute)) {
		t.Fatalf("%+v", first.Health)
	}
	deadline := time.After(30 * time.Second)
	for {
		select {
		case next := <-seen:
			if next.Health.State != health.Failed || next.HealthBefore != health.Progressing || next.Health.Reason != "Foo" || next.Time.Before(begun.Add(5*time.Minute)) {
				t.Errorf("at %v: %+v", next.Time, next.Health)
			}
			return
		case <-deadline:
			t.Fatal("nothing was said when its time had come")
		default:
			clock.Step(time.Second)
		}
	}
}

// However often an object is written, and whatever it says, it is in the list once.
func TestAnObjectIsDueOnce(t *testing.T) {
	t.Parallel()
	list := dueList{woken: make(chan struct{}, 1)}
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	for i := range 1000 {
		for k := range 10 {
			list.set(objectKey{uid: types.UID(fmt.Sprint(k))}, at(10_000+(i*7+k)%100-i))
		}
	}
	if len(list.heap) != 10 || len(list.items) != 10 {
		t.Errorf("%d and %d of 10 objects", len(list.heap), len(list.items))
	}
	for k := range 10 {
		list.set(objectKey{uid: types.UID(fmt.Sprint(k))}, at(20-k))
	}
	list.set(objectKey{uid: types.UID(fmt.Sprint(9))}, time.Time{})
	list.set(objectKey{uid: "unknown"}, time.Time{})
	for k := 8; k >= 0; k-- {
		if key, _, found := list.next(at(20)); !found || key.uid != types.UID(fmt.Sprint(k)) {
			t.Errorf("%v, want %v", key.uid, types.UID(fmt.Sprint(k)))
		}
	}
	if _, wait, found := list.next(at(20)); found || wait != time.Hour || len(list.items) != 0 {
		t.Errorf("%v, %v, %d", wait, found, len(list.items))
	}
}
