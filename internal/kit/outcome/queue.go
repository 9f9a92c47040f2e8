package outcome

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is client-go's, with an order that is fair among namespaces. In controller-runtime's the requests of one priority come
// in the order in which they were added: 1,000 of one namespace before one of another. Priorities that say whose turn it is would
// do for what is ready, and not for what is added for later, whose turn is not known then.
//
// It does what controller-runtime's does beside: what is seen at a start is of low priority, and a request that is handed out is
// not handed out again because it was added for later before.
type Queue struct {
	workqueue.TypedDelayingInterface[reconcile.Request]
	ready   workqueue.TypedInterface[reconcile.Request]
	limiter workqueue.TypedRateLimiter[reconcile.Request]
	turns   *turns
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*Queue)(nil)

// NewFairQueue makes the queue of a controller of that name, which has so many workers.
func NewFairQueue(name string, workers int, limiter workqueue.TypedRateLimiter[reconcile.Request]) *Queue {
	order := newTurns(workers)
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
		Name: name, Queue: &waited{TypedInterface: ready, turns: order},
	})
	return &Queue{TypedDelayingInterface: delaying, ready: ready, limiter: limiter, turns: order}
}

// waited gets the requests that were added for later when their time has come.
type waited struct {
	workqueue.TypedInterface[reconcile.Request]
	turns *turns
}

// Add adds a request, unless it has been handed out since it was added for later.
func (w *waited) Add(request reconcile.Request) {
	if w.turns.due(request) {
		w.TypedInterface.Add(request)
	}
}

// AddWithOpts adds requests, for later maybe: the sooner of both times counts.
func (q *Queue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	priority := 0
	if options.Priority != nil {
		priority = *options.Priority
	}
	for _, request := range requests {
		after := options.After
		if options.RateLimited {
			if pause := q.limiter.When(request); after == 0 || pause < after {
				after = pause
			}
		}
		q.turns.want(request, priority, after > 0)
		if after > 0 {
			q.TypedDelayingInterface.AddAfter(request, after)
		} else {
			q.ready.Add(request)
		}
	}
}

// Add adds a request.
func (q *Queue) Add(request reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter adds a request for later.
func (q *Queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited adds a request that has failed.
func (q *Queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// Forget forgets the failures of a request.
func (q *Queue) Forget(request reconcile.Request) { q.limiter.Forget(request) }

// NumRequeues is how often a request has failed.
func (q *Queue) NumRequeues(request reconcile.Request) int { return q.limiter.NumRequeues(request) }

// GetWithPriority hands a request out, with its priority.
func (q *Queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	request, shutdown = q.Get()
	return request, q.turns.priority(request), shutdown
}

// Done notes that what was to be done for a request is.
func (q *Queue) Done(request reconcile.Request) {
	q.turns.done(request)
	q.TypedDelayingInterface.Done(request)
}

// Len is how many wait, also those whose namespace has its share of the workers.
func (q *Queue) Len() int { return q.turns.waiting() }

// ShutDown ends the queue: nothing that waits is handed out any more.
func (q *Queue) ShutDown() {
	q.turns.close()
	q.TypedDelayingInterface.ShutDown()
}

// ShutDownWithDrain is ShutDown: nobody waits for what is being worked on.
func (q *Queue) ShutDownWithDrain() { q.ShutDown() }
