package outcome

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// backoff is a rate limiter whose pause doubles with every retry that fails, and not with
// what else fails meanwhile: a reconcile may follow any change of the object, at once, and in
// the middle of a rollout ten of them would make half a minute out of a second in which
// something was forbidden. So nothing is left alone for much longer than it has been
// failing.
type backoff[T comparable] struct {
	workqueue.TypedRateLimiter[T]
	clock clock.PassiveClock
	limit time.Duration

	mu sync.Mutex
	// until is when each item's pause is over.
	until map[T]time.Time
}

// newBackoff returns a backoff of pauses from base to limit.
func newBackoff[T comparable](clock clock.PassiveClock, base, limit time.Duration) *backoff[T] {
	return &backoff[T]{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[T](base, limit),
		clock:            clock,
		limit:            limit,
		until:            map[T]time.Time{},
	}
}

// When returns how long to leave an item alone that has failed: what is left of its pause,
// or the next one.
func (b *backoff[T]) When(item T) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	left := b.until[item].Sub(now)
	if left > 0 {
		return left
	}
	if left < -2*b.limit {
		// Nobody has tried for a long time, because what failed last was not to be retried:
		// the failures before have nothing to do with this one.
		b.TypedRateLimiter.Forget(item)
	}
	pause := b.TypedRateLimiter.When(item)
	b.until[item] = now.Add(pause)
	return pause
}

// Forget takes an item for healthy.
func (b *backoff[T]) Forget(item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.until, item)
	b.TypedRateLimiter.Forget(item)
}
