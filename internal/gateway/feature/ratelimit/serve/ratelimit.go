// Package serve counts requests, and refuses those that are too many.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
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

// limitKey is what is counted together. It names the route, because counts outlive a table. It
// is for one request: its name of a client may be a part of a whole head.
type limitKey struct {
	route  string
	limit  ratelimit.Limit // listeners may have limits of their own for a route
	who    string          // the authenticated name of the client, or
	client netip.Addr      // its address, as clients.Of defines it
}

// limitHash stands for a limitKey, in memory of a fixed size.
type limitHash [16]byte

// limiter counts requests with the generic cell rate algorithm. For each key it only stores
// the time at which the next request would be exactly on time. Keys are hashes, so that each
// takes the same memory, whatever the names of clients are.
type limiter struct {
	clock  clock.PassiveClock
	secret [32]byte // who does not have it cannot find names that are counted as one
	shards [limitShards]limitShard
}

type limitShard struct {
	mu    sync.Mutex
	next  map[limitHash]int64 // Unix nanoseconds
	swept int64               // when makeRoom last looked at all keys
}

func newLimiter(clock clock.PassiveClock) *limiter {
	l := &limiter{clock: clock}
	_, _ = rand.Read(l.secret[:]) // never fails
	for i := range l.shards {
		l.shards[i].next = map[limitHash]int64{}
	}
	return l
}

// Engine counts the requests of all routes.
type Engine struct {
	limiter *limiter
	shared  SharedLimiter
}

// New returns an engine. Without shared there is one replica, which counts alone.
func New(clock clock.PassiveClock, shared SharedLimiter) *Engine {
	return &Engine{limiter: newLimiter(clock), shared: shared}
}

// Step bounds how often clients use a route. Limits per authenticated client count after authentication.
// All others count before it, so that they also limit guessing.
type Step struct {
	*ratelimit.Limit

	engine *Engine
	route  string
}

// Of returns the step of a route.
func (n *Engine) Of(route string, limit *ratelimit.Limit) Step {
	return Step{Limit: limit, engine: n, route: route}
}

// Admit counts the request.
func (l Step) Admit(e *exchange.Exchange) bool {
	key := limitKey{route: l.route, limit: *l.Limit}
	switch l.Per {
	case ratelimit.PerKey:
		key.who = e.Facts.Identity
	case ratelimit.PerClientAddress:
		key.client = e.Client.Address
	}
	wait := l.engine.count(e.Context(), key, l.Limit)
	if wait == 0 {
		return true
	}
	seconds := int64((wait + time.Second - 1) / time.Second)
	e.Head()["Retry-After"] = []string{strconv.FormatInt(seconds, 10)}
	return e.Refuse(http.StatusTooManyRequests, "rate_limit")
}

// count counts a request, here or with the other replicas. Without a SharedLimiter there are none.
func (n *Engine) count(ctx context.Context, key limitKey, limit *ratelimit.Limit) time.Duration {
	if !limit.Shared || n.shared == nil {
		return n.limiter.take(key, limit)
	}
	return n.shared.Take(ctx, &quota.Subject{
		Route: key.route, Limit: quota.NewLimit(limit.Requests, limit.Period, limit.Burst), Per: byte(limit.Per),
		Requests: limit.Requests, Period: limit.Period, Who: key.who, Client: key.client,
	})
}

// hash returns what stands for a key. Different keys have different texts.
func (l *limiter) hash(key *limitKey) limitHash {
	var room [256]byte // most texts need no more, and none of the heap
	text := append(room[:0], l.secret[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(key.limit.Requests))
	text = binary.BigEndian.AppendUint64(text, uint64(key.limit.Period))
	text = binary.BigEndian.AppendUint64(text, uint64(key.limit.Burst))
	client := key.client.As16()
	text = append(text, byte(key.limit.Per), byte(key.client.BitLen())) // no address has no bits
	text = append(text, client[:]...)
	text = binary.BigEndian.AppendUint64(text, uint64(len(key.route)))
	text = append(append(text, key.route...), key.who...)
	sum := sha256.Sum256(text)
	return limitHash(sum[:len(limitHash{})])
}

// take counts a request. It returns 0 if the request is allowed. Otherwise it returns how
// long to wait until one would be.
func (l *limiter) take(key limitKey, limit *ratelimit.Limit) time.Duration {
	exact := quota.NewLimit(limit.Requests, limit.Period, limit.Burst)
	hash, now := l.hash(&key), l.clock.Now().UnixNano()
	shard := &l.shards[hash[0]%limitShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	next, known := shard.next[hash]
	granted, next, wait := exact.Grant(next, now, 1)
	if granted == 0 {
		return wait
	}
	if !known && len(shard.next) >= maxLimitKeys {
		shard.makeRoom(now)
	}
	shard.next[hash] = next
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
