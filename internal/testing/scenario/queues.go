package scenario

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// queues are those of the controllers of one operator: they tell whether it has anything
// left to do.
type queues struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	// all are those that were made, and expected is how many there will be at the least: a
	// controller makes its own when it begins.
	all      []*queue
	expected int
}

// newQueues returns the queues of so many controllers, or more.
func newQueues(clock clock.PassiveClock, expected int) *queues {
	return &queues{clock: clock, expected: max(1, expected)}
}

// make makes the queue of a controller.
func (q *queues) make(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	made := &queue{clock: q.clock, limiter: limiter, due: map[reconcile.Request]time.Time{}}
	made.PriorityQueue = outcome.NewFairQueue(name, outcome.DefaultConcurrency, limiter)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, made)
	return made
}

// idle reports whether every controller has looked at all that there was when it began, that no
// reconcile is under way, and that none is due within that time.
func (q *queues) idle(within time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, each := range q.all {
		if !each.idle(within) {
			return false
		}
	}
	return len(q.all) >= q.expected
}

// queue is that of every controller, and knows what is not done yet.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	clock   clock.PassiveClock
	limiter workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// asked reports whether somebody has asked for something to do. That comes after everything
	// that there was at the beginning was added.
	asked bool
	// due is when each request that was added is to be handed out, and working is how many
	// were handed out and are not done.
	due     map[reconcile.Request]time.Time
	working int
}

// AddWithOpts adds requests, for later maybe. How long a failure has to wait is asked here,
// so that it is known.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		each := options
		if options.RateLimited {
			pause := q.limiter.When(request)
			if each.RateLimited = false; each.After == 0 || pause < each.After {
				each.After = pause
			}
		}
		q.note(request, each.After)
		q.PriorityQueue.AddWithOpts(each, request)
	}
}

func (q *queue) note(request reconcile.Request, after time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.clock.Now().Add(after)
	if known, ok := q.due[request]; !ok || at.Before(known) {
		q.due[request] = at
	}
}

// Add adds a request.
func (q *queue) Add(request reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddAfter adds a request for later.
func (q *queue) AddAfter(request reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, request)
}

// AddRateLimited adds a request that has failed.
func (q *queue) AddRateLimited(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

// Get hands a request out.
func (q *queue) Get() (reconcile.Request, bool) {
	request, _, shutdown := q.GetWithPriority()
	return request, shutdown
}

// GetWithPriority hands a request out, with its priority.
func (q *queue) GetWithPriority() (request reconcile.Request, priority int, shutdown bool) {
	q.mu.Lock()
	q.asked = true
	q.mu.Unlock()
	request, priority, shutdown = q.PriorityQueue.GetWithPriority()
	if shutdown {
		return request, priority, shutdown
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.due, request)
	q.working++
	return request, priority, shutdown
}

// Done notes that what was to be done for a request is.
func (q *queue) Done(request reconcile.Request) {
	q.PriorityQueue.Done(request)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.working--
}

func (q *queue) idle(within time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	// A request that was added again after it was handed out, but before that was noted, is
	// only in this queue.
	if q.Len() > 0 {
		return false
	}
	soon := q.clock.Now().Add(within)
	for _, at := range q.due {
		if at.Before(soon) {
			return false
		}
	}
	return q.asked && q.working == 0
}
