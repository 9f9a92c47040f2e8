//go:build scale

package scale

import (
	"context"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/testing/objectwatch"
)

// event is what a watch reported, and when it arrived here.
type event struct {
	kind   watch.EventType
	object client.Object
	at     time.Time
}

// follower passes the events of a watch to whoever waits for them. Somebody who waits
// says so before causing what he waits for, so that nothing is missed.
type follower struct {
	mu      sync.Mutex
	waiting map[int]*waiter
	next    int
}

type waiter struct {
	check func(event) bool
	done  chan time.Time
}

// follow watches one kind until the end of the test. A watch that the API server ends,
// as it does with one that falls behind, goes on where it was.
func follow(t *testing.T, s *server, list client.ObjectList) *follower {
	t.Helper()
	f := &follower{waiting: map[int]*waiter{}}
	stop, ended, err := objectwatch.Follow(context.Background(), s.client, list, func(e watch.Event) {
		f.pass(event{kind: e.Type, object: e.Object.(client.Object), at: time.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	go func() { <-ended; f.end() }()
	return f
}

func (f *follower) pass(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, w := range f.waiting {
		if w.check(e) {
			w.done <- e.at
			delete(f.waiting, id)
		}
	}
}

// end tells everybody who still waits that nothing will come.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, w := range f.waiting {
		close(w.done)
		delete(f.waiting, id)
	}
}

// expect returns where the time of the first event arrives that check is content with.
func (f *follower) expect(check func(event) bool) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &waiter{check: check, done: make(chan time.Time, 1)}
	f.waiting[f.next] = w
	f.next++
	return w.done
}

// receive waits for what was expected.
func receive(t *testing.T, what string, expected <-chan time.Time, patience time.Duration) time.Time {
	t.Helper()
	select {
	case at, ok := <-expected:
		if !ok {
			t.Fatalf("the watch ended while waiting for %s", what)
		}
		return at
	case <-time.After(patience):
		t.Fatalf("after %v still waiting for %s", patience, what)
		return time.Time{}
	}
}
