//go:build scale

package scale

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// watchFunc opens a watch.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// WatchWithContext implements cache.WatcherWithContext.
func (f watchFunc) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, options)
}

// follow watches one kind until the end of the test. A watch that the API server ends,
// as it does with one that falls behind, goes on where it was.
func follow(t *testing.T, s *server, list client.ObjectList) *follower {
	t.Helper()
	f := &follower{waiting: map[int]*waiter{}}
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.client.List(ctx, list, client.Limit(1)); err != nil {
		t.Fatalf("list %T: %v", list, err)
	}
	open := watchFunc(func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		// A list of its own: the client reads from it what to watch.
		return s.client.Watch(ctx, list.DeepCopyObject().(client.ObjectList), &client.ListOptions{Raw: &options})
	})
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), open)
	if err != nil {
		t.Fatalf("watch %T: %v", list, err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		watcher.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for e := range watcher.ResultChan() {
			if object, ok := e.Object.(client.Object); ok {
				f.pass(event{kind: e.Type, object: object, at: time.Now()})
			}
		}
		f.end()
	}()
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
