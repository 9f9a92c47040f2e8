package scenario

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The end of a step is when the operator has nothing left to do. That it has written nothing
// for a while is not enough: an operator that was just started may not have begun.
func TestAnOperatorIsIdleWhenNothingIsLeftToDo(t *testing.T) {
	const within, pause = time.Second, 30 * time.Second
	shop := reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}}
	tests := map[string]struct {
		do   func(q *queue)
		idle bool
	}{
		"no worker has begun":               {func(*queue) {}, false},
		"a worker waits":                    {func(q *queue) { q.handOut(t) }, true},
		"something is to be done":           {func(q *queue) { q.handOut(t); q.Add(shop) }, false},
		"it is being done":                  {func(q *queue) { q.Add(shop); q.handOut(t, shop) }, false},
		"it is done":                        {func(q *queue) { q.Add(shop); q.handOut(t, shop); q.Done(shop) }, true},
		"it came again meanwhile":           {func(q *queue) { q.Add(shop); q.handOut(t, shop); q.Add(shop); q.Done(shop) }, false},
		"it is looked at again soon":        {func(q *queue) { q.handOut(t); q.AddAfter(shop, within/2) }, false},
		"it is looked at again later":       {func(q *queue) { q.handOut(t); q.AddAfter(shop, 10*within) }, true},
		"later, and then soon":              {func(q *queue) { q.handOut(t); q.AddAfter(shop, 10*within); q.AddAfter(shop, within/2) }, false},
		"soon, and then later":              {func(q *queue) { q.handOut(t); q.AddAfter(shop, within/2); q.AddAfter(shop, 10*within) }, false},
		"it has failed, and waits for long": {func(q *queue) { q.handOut(t); q.AddRateLimited(shop) }, true},
		"it has failed, and waits for less": {
			func(q *queue) {
				q.handOut(t)
				q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, After: within / 2}, shop)
			}, false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			all := newQueues(testingclock.NewFakePassiveClock(time.Unix(1000, 0)), 1)
			if all.idle(within) {
				t.Error("idle without a controller")
			}
			limiter := workqueue.NewTypedItemFastSlowRateLimiter[reconcile.Request](pause, pause, 1)
			made, ok := all.make("shops", limiter).(*queue)
			if !ok {
				t.Fatal("another queue")
			}
			t.Cleanup(made.ShutDown)
			tc.do(made)
			if got := all.idle(within); got != tc.idle {
				t.Errorf("idle: %v, want %v", got, tc.idle)
			}
		})
	}
}

// handOut hands out the requests, or has a worker wait in vain for one.
func (q *queue) handOut(t *testing.T, requests ...reconcile.Request) {
	t.Helper()
	for range requests {
		q.Get()
	}
	if len(requests) > 0 {
		return
	}
	began := make(chan struct{})
	go func() {
		close(began)
		q.Get()
	}()
	<-began
	for asked := false; !asked; {
		q.mu.Lock()
		asked = q.asked
		q.mu.Unlock()
	}
}

// A retry waits as long as controller-runtime would have it wait.
func TestAQueueKeepsThePauseOfAFailure(t *testing.T) {
	shop := reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	all := newQueues(testingclock.NewFakePassiveClock(time.Unix(1000, 0)), 1)
	q := all.make("shops", limiter)
	t.Cleanup(q.ShutDown)
	for want := 1; want <= 3; want++ {
		q.AddRateLimited(shop)
		if got, _ := q.Get(); got != shop {
			t.Fatalf("got %v", got)
		}
		q.Done(shop)
		if got := q.NumRequeues(shop); got != want {
			t.Errorf("%d failures are known, want %d", got, want)
		}
	}
	q.Forget(shop)
	if got := q.NumRequeues(shop); got != 0 {
		t.Errorf("%d failures are known after a success", got)
	}
}
