package outcome

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/fair"
)

// lowEvery is after how many requests that have changed one of low priority comes, if one waits: without an end to what changes
// in one namespace, nobody else would get the first look at what is his after a start.
const lowEvery = 10

// turns is the order of a queue of requests, and which of them are worked on. It implements workqueue.Queue, which calls it with
// its lock held.
//
// The next request is of the namespace for which the fewest are worked on, and namespaces take turns. A namespace takes another
// worker only while more are free than work for it (fair.Share): so whatever one does, and however long it takes, workers are
// free for the others.
type turns struct {
	workers int

	mu sync.Mutex
	// changed and low are those that wait: low are those of a priority below zero, as handler.LowPriority.
	changed, low fair.Line[reconcile.Request]
	// waits is in which of the lines a request waits.
	waits map[reconcile.Request]*fair.Line[reconcile.Request]
	// working are those that were handed out, with their priorities, and held is how many there are of each namespace.
	working map[reconcile.Request]int
	held    map[string]int
	// wanted are the priorities of those that wait, or will.
	wanted map[reconcile.Request]int
	// later are those that were added for later, and were not handed out since.
	later map[reconcile.Request]bool
	// since is how many have been handed out since one of low priority was.
	since  int
	closed bool
}

func newTurns(workers int) *turns {
	return &turns{
		workers: workers,
		waits:   map[reconcile.Request]*fair.Line[reconcile.Request]{}, working: map[reconcile.Request]int{},
		held: map[string]int{}, wanted: map[reconcile.Request]int{}, later: map[reconcile.Request]bool{},
	}
}

// want notes the priority of a request that is about to be added, or to be added later. The highest counts.
func (t *turns) want(request reconcile.Request, priority int, later bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.wanted[request]; !ok || known < priority {
		t.wanted[request] = priority
	}
	if later {
		t.later[request] = true
	}
}

// due reports whether a request that was added for later is still wanted. It is not when it has been handed out since.
func (t *turns) due(request reconcile.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.later[request]
}

// Push adds a request that does not wait yet.
func (t *turns) Push(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := &t.changed
	if t.wanted[request] < 0 {
		line = &t.low
	}
	line.Add(request.Namespace, request)
	t.waits[request] = line
}

// Touch is called when one is added that waits already: it may have got a higher priority.
func (t *turns) Touch(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits[request] != &t.low || t.wanted[request] < 0 {
		return
	}
	t.low.Drop(request.Namespace, request)
	t.changed.Add(request.Namespace, request)
	t.waits[request] = &t.changed
}

// Len is 1 if one may be handed out now, or 0. What a namespace has beyond its share of the workers waits until a worker is done,
// who then asks for the next one.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if line, _ := t.next(); line == nil || t.closed {
		return 0
	}
	return 1
}

// Pop hands out the next one.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	line, namespace := t.next()
	if line == nil {
		return reconcile.Request{} // Len says whether there is one
	}
	if t.since++; line == &t.low {
		t.since = 0
	}
	request := line.Take(namespace)
	t.working[request] = t.wanted[request]
	t.held[namespace]++
	delete(t.waits, request)
	delete(t.wanted, request)
	delete(t.later, request)
	return request
}

// next is in which line the next one waits, and of which namespace it is. The lock is held.
func (t *turns) next() (line *fair.Line[reconcile.Request], namespace string) {
	free := t.workers - len(t.working)
	held, may := func(namespace string) int { return t.held[namespace] }, func(held int) bool { return fair.Share(held, free) }
	first, second := &t.changed, &t.low
	if t.since >= lowEvery {
		first, second = second, first
	}
	if namespace, _, ok := first.Next(held, may); ok {
		return first, namespace
	}
	if namespace, _, ok := second.Next(held, may); ok {
		return second, namespace
	}
	return nil, ""
}

// done notes that a request is not worked on any more.
func (t *turns) done(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.working[request]; !ok {
		return
	}
	delete(t.working, request)
	if t.held[request.Namespace]--; t.held[request.Namespace] == 0 {
		delete(t.held, request.Namespace)
	}
}

// priority is that with which a request was handed out.
func (t *turns) priority(request reconcile.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.working[request]
}

// waiting is how many wait, also those that may not be handed out yet.
func (t *turns) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed.Len() + t.low.Len()
}

// close hands out nothing any more.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
