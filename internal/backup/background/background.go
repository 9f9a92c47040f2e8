// Package background does work that takes longer than a reconcile may: a bounded number at a time, fair among namespaces, and in
// a namespace in the order in which it was asked for. Whoever asked is told when it has ended, and asks again for the result. Results are
// in memory only: after a restart the work is done again, so it must bear that.
package background

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Pool does work of one kind. K says which work, R is what comes of it.
type Pool[K comparable, R any] struct {
	// limit is how much is done at a time, and perNamespace how much of it for one namespace. A namespace for which nothing is
	// done does not wait: one more is begun for it beyond the limit.
	limit, perNamespace int

	mu      sync.Mutex
	base    context.Context // the life of the pool: work outlives the reconcile that asks for it
	items   []*item[K, R]
	running sync.WaitGroup
	notify  func(types.NamespacedName)
}

type item[K comparable, R any] struct {
	owner  types.NamespacedName
	key    K
	work   func(context.Context) R
	cancel context.CancelFunc // set once it runs
	ended  bool
	result R
}

// New returns a pool that does nothing until it is started.
func New[K comparable, R any](limit, perNamespace int) *Pool[K, R] {
	return &Pool[K, R]{limit: limit, perNamespace: perNamespace, notify: func(types.NamespacedName) {}}
}

// Notify says whom to tell that work of an owner has ended.
func (p *Pool[K, R]) Notify(notify func(owner types.NamespacedName)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}

// Start does work until the context ends, and then waits for what is being done. It implements manager.Runnable.
func (p *Pool[K, R]) Start(ctx context.Context) error {
	p.mu.Lock()
	p.base = ctx
	p.next()
	p.mu.Unlock()
	<-ctx.Done()
	p.running.Wait()
	return nil
}

// Ask returns what came of some work of an owner. Where that has not ended, it is begun, or waits until it may be.
func (p *Pool[K, R]) Ask(owner types.NamespacedName, key K, work func(context.Context) R) (result R, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := p.index(owner, key); at >= 0 {
		return p.items[at].result, p.items[at].ended
	}
	p.items = append(p.items, &item[K, R]{owner: owner, key: key, work: work})
	p.next()
	return result, false
}

// Keep forgets the work of an owner that is not wanted any more. What is being done of it is canceled. It reports whether any of
// that has not ended yet.
func (p *Pool[K, R]) Keep(owner types.NamespacedName, wanted func(K) bool) (canceling bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = slices.DeleteFunc(p.items, func(it *item[K, R]) bool {
		if it.owner != owner || wanted(it.key) {
			return false
		}
		if it.cancel != nil && !it.ended {
			it.cancel()
			canceling = true
			return false // it tells when it has ended
		}
		return true
	})
	return canceling
}

func (p *Pool[K, R]) index(owner types.NamespacedName, key K) int {
	return slices.IndexFunc(p.items, func(it *item[K, R]) bool { return it.owner == owner && it.key == key })
}

// next begins what may begin. The lock is held.
func (p *Pool[K, R]) next() {
	if p.base == nil || p.base.Err() != nil {
		return
	}
	all, in := 0, map[string]int{}
	for _, it := range p.items {
		if it.cancel != nil && !it.ended {
			all++
			in[it.owner.Namespace]++
		}
	}
	for {
		it := p.first(in)
		if it == nil {
			return
		}
		held := in[it.owner.Namespace]
		if held > 0 && (held >= p.perNamespace || all >= p.limit) {
			return // and so nobody else may, for whom no less is done
		}
		all++
		in[it.owner.Namespace]++
		var ctx context.Context
		ctx, it.cancel = context.WithCancel(p.base)
		p.running.Go(func() { p.do(ctx, it) })
	}
}

// first is what was asked for first, of what has not begun, by the namespace for which the fewest are done: in says how many. It
// is nil where everything has begun.
func (p *Pool[K, R]) first(in map[string]int) *item[K, R] {
	var first *item[K, R]
	for _, it := range p.items {
		if it.cancel == nil && (first == nil || in[it.owner.Namespace] < in[first.owner.Namespace]) {
			first = it
		}
	}
	return first
}

func (p *Pool[K, R]) do(ctx context.Context, it *item[K, R]) {
	result := it.work(ctx)
	p.mu.Lock()
	it.cancel()
	it.result, it.ended = result, true
	notify := p.notify
	p.next()
	p.mu.Unlock()
	notify(it.owner)
}
