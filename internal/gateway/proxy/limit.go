package proxy

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

const (
	limitShards = 16
	// maxLimitKeys bounds what is remembered in a shard: 16 × 8192 clients in all.
	maxLimitKeys = 8192
)

// limitKey is what is counted together. It outlives a table: the route is named.
type limitKey struct {
	route  string
	who    string     // who the client proved to be, or
	client netip.Addr // its address, as clients.Of says
}

// limiter counts requests by the generic cell rate algorithm: of each key it remembers
// only when the next request would be exactly on time.
type limiter struct {
	clock  clock.PassiveClock
	seed   maphash.Seed
	shards [limitShards]limitShard
}

type limitShard struct {
	mu    sync.Mutex
	next  map[limitKey]int64 // Unix nanoseconds
	swept int64              // when makeRoom looked at all keys
}

func newLimiter(clock clock.PassiveClock) *limiter {
	l := &limiter{clock: clock, seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].next = map[limitKey]int64{}
	}
	return l
}

// take counts a request. It returns 0 if the request is allowed, and otherwise after
// what time one would be.
func (l *limiter) take(key limitKey, limit *table.RateLimit) time.Duration {
	interval := max(int64(limit.Period)/max(limit.Requests, 1), 1)
	tolerance := interval * max(limit.Burst, 1)
	now := l.clock.Now().UnixNano()
	shard := &l.shards[maphash.Comparable(l.seed, key)%limitShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	next, known := shard.next[key]
	next = max(next, now) + interval
	if early := next - now - tolerance; early > 0 {
		return time.Duration(early)
	}
	if !known && len(shard.next) >= maxLimitKeys {
		shard.makeRoom(now)
	}
	shard.next[key] = next
	return 0
}

// makeRoom forgets who has been quiet for long enough to be allowed everything again,
// which it looks for once in a second at most, and somebody else if there is no such key.
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
