package proxy

import (
	"context"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/quota"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// SharedLimiter counts requests for all replicas together.
type SharedLimiter interface {
	// Take counts a request. It returns 0 if the request is allowed. Otherwise it returns how
	// long to wait until one would be.
	Take(ctx context.Context, subject *quota.Subject) time.Duration
}

const (
	limitShards = 16
	// maxLimitKeys bounds the keys of a shard. In total there are 16 × 8192.
	maxLimitKeys = 8192
)

// limitKey identifies what is counted together. It names the route, because counts outlive
// a table.
type limitKey struct {
	route  string
	limit  table.RateLimit // listeners may have limits of their own for a route
	who    string          // the authenticated name of the client, or
	client netip.Addr      // its address, as clients.Of defines it
}

// limiter counts requests with the generic cell rate algorithm. For each key it only stores
// the time at which the next request would be exactly on time.
type limiter struct {
	clock  clock.PassiveClock
	seed   maphash.Seed
	shards [limitShards]limitShard
}

type limitShard struct {
	mu    sync.Mutex
	next  map[limitKey]int64 // Unix nanoseconds
	swept int64              // when makeRoom last looked at all keys
}

func newLimiter(clock clock.PassiveClock) *limiter {
	l := &limiter{clock: clock, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].next = map[limitKey]int64{}
	}
	return l
}

// countRequest counts a request, here or with the other replicas. Without a SharedLimiter there are none.
func (h *Handler) countRequest(ctx context.Context, key limitKey, limit *table.RateLimit) time.Duration {
	if !limit.Shared || h.options.Shared == nil {
		return h.limiter.take(key, limit)
	}
	return h.options.Shared.Take(ctx, &quota.Subject{
		Route: key.route, Limit: quota.NewLimit(limit.Requests, limit.Period, limit.Burst), Per: byte(limit.Per),
		Requests: limit.Requests, Period: limit.Period, Who: key.who, Client: key.client,
	})
}

// take counts a request. It returns 0 if the request is allowed. Otherwise it returns how
// long to wait until one would be.
func (l *limiter) take(key limitKey, limit *table.RateLimit) time.Duration {
	exact := quota.NewLimit(limit.Requests, limit.Period, limit.Burst)
	now := l.clock.Now().UnixNano()
	shard := &l.shards[maphash.Comparable(l.seed, key)%limitShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	next, known := shard.next[key]
	granted, next, wait := exact.Grant(next, now, 1)
	if granted == 0 {
		return wait
	}
	if !known && len(shard.next) >= maxLimitKeys {
		shard.makeRoom(now)
	}
	shard.next[key] = next
	return 0
}

// makeRoom removes keys that have been quiet long enough to have their full limit again. It
// looks for such keys at most once per second. If there is none, it removes another key.
func (s *limitShard) makeRoom(now int64) {
	if now-s.swept >= int64(time.Second) {
		s.swept = now
		for key, next := range s.next {
			if next <= now {
				delete(s.next, key)
			}
		}
	}
	for key := range s.next {
		if len(s.next) < maxLimitKeys {
			return
		}
		delete(s.next, key)
	}
}
