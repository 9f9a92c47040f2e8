package outcome

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// DefaultConcurrency is how many objects of a kind are worked on at a time: a reconcile waits
// for the API server most of its time.
const DefaultConcurrency = 10

// Backoff of a failing object: quick at first, because most failures pass, and never so
// long that a cluster that has recovered is left waiting.
const (
	backoffBase = 20 * time.Millisecond
	backoffMax  = 30 * time.Second
	// reconcileTimeout ends a reconcile that hangs.
	reconcileTimeout = 30 * time.Second
)

// NewQueue makes the queue of a controller of that name, as controller.Options has it.
type NewQueue func(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request]

// ControllerOptions are those of every kind's controller. concurrency is how many objects
// are worked on at a time, 0: DefaultConcurrency. newQueue replaces the queue, as a test
// does that waits for it to be empty; nil: one that is fair among namespaces, see Queue.
func ControllerOptions(concurrency int, newQueue NewQueue) controller.Options {
	if concurrency == 0 {
		concurrency = DefaultConcurrency
	}
	if newQueue == nil {
		newQueue = func(
			name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
		) workqueue.TypedRateLimitingInterface[reconcile.Request] {
			return NewFairQueue(name, concurrency, limiter)
		}
	}
	warm := true
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		NewQueue:                newQueue,
		RateLimiter:             newBackoff[reconcile.Request](clock.RealClock{}, backoffBase, backoffMax),
		ReconciliationTimeout:   reconcileTimeout,
		// The standby's caches are full when it takes over.
		EnableWarmup: &warm,
	}
}
