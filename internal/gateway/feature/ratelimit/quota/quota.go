package quota

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// MaxWait bounds how long a request waits for the owner of its key. Then this replica decides alone.
	MaxWait = 20 * time.Millisecond
	// batchTime is the time whose tokens are leased at once: for 100 requests per second one, for 10,000 one hundred.
	batchTime = 10 * time.Millisecond
	// leaseTime is how long leased tokens hold. What is not used until then is lost.
	leaseTime = 100 * time.Millisecond
	// refusalTime bounds how long a refusal of the owner holds without another ask.
	refusalTime = time.Second
	// aloneTime is how long this replica decides alone after the owner did not answer in time.
	aloneTime = 100 * time.Millisecond
	maxWant   = 1 << 15
)

// Ask asks the owner of a key for tokens.
type Ask struct {
	Key   Key
	Limit Limit
	// Want is how many tokens are wanted. With 0 there is no answer.
	Want uint32
	// Ahead is how far the key is ahead of its time, as far as the asking replica knows and the owner may not.
	Ahead int64
}

// Answer is the answer to an Ask.
type Answer struct {
	Key     Key
	Granted uint32
	// Wait is how long to wait for the next token, if fewer were granted than wanted.
	Wait time.Duration
	// Ahead is how far the key is ahead of its time now.
	Ahead int64
}

// Counts are numbers since the start.
type Counts struct {
	// Asks are the asks that were sent.
	Asks uint64
	// Granted and Refused are requests that were decided by the owner's count.
	Granted, Refused uint64
	// Unreached, Late and Full are requests that this replica decided alone: the owner was not reached, did not answer in
	// time, or too much was waiting to be sent to it.
	Unreached, Late, Full uint64
}

// Quota decides about requests. It is safe for concurrent use.
type Quota struct {
	clock  clock.WithTicker
	start  time.Time
	ledger *ledger
	ring   atomic.Pointer[Ring]
	slow   atomic.Pointer[map[uint64]*atomic.Int64] // by connection, until when its peer is not waited for

	asks, granted, refused, unreached, late, full atomic.Uint64
}

// New returns a Quota of a replica that is alone.
func New(clock clock.WithTicker) *Quota {
	q := &Quota{clock: clock, start: clock.Now(), ledger: newLedger()}
	q.SetRing(&Ring{})
	return q
}

func (q *Quota) now() int64 { return int64(q.clock.Since(q.start)) }

// Counts returns the numbers since the start.
func (q *Quota) Counts() Counts {
	return Counts{
		Asks: q.asks.Load(), Granted: q.granted.Load(), Refused: q.refused.Load(),
		Unreached: q.unreached.Load(), Late: q.late.Load(), Full: q.full.Load(),
	}
}

// Take counts a request. It returns 0 if the request is allowed. Otherwise it returns how long to wait until one would be.
func (q *Quota) Take(ctx context.Context, key Key, limit Limit) time.Duration {
	ring := q.ring.Load()
	owner := ring.owner(key)
	s := q.ledger.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := q.now()
	e := s.get(key, limit, now)
	switch {
	case owner == nil || owner.Self:
		return q.told(e.count(ring.own(limit), now))
	case owner.Peer == nil:
		return q.alone(&q.unreached, e, ring.alone(limit), now)
	}
	return q.lease(ctx, &lease{key: key, limit: limit, ring: ring, owner: owner, shard: s, entry: e})
}

// count takes a request as the one who counts.
func (e *entry) count(limit Limit, now int64) time.Duration {
	_, next, wait := limit.Grant(e.next, now, 1)
	e.next, e.from = next, 0
	return wait
}

// told counts a decision by the owner's count.
func (q *Quota) told(wait time.Duration) time.Duration {
	if wait == 0 {
		q.granted.Add(1)
	} else {
		q.refused.Add(1)
	}
	return wait
}

// alone decides without the owner.
func (q *Quota) alone(why *atomic.Uint64, e *entry, limit Limit, now int64) time.Duration {
	why.Add(1)
	return e.count(limit, now)
}

// decideLate decides without an owner that is reached and does not answer in time. It will have to pay for the request, so that both
// together allow no more.
func (q *Quota) decideLate(why *atomic.Uint64, l *lease) time.Duration {
	e, from := l.entry, l.entry.from
	wait := q.alone(why, e, l.ring.alone(l.limit), q.now())
	e.from = from // the owner need not be told in another way
	if e.owedTo != l.owner.Connection {
		e.owed, e.owedTo = 0, l.owner.Connection
	}
	if wait == 0 {
		e.owed = min(e.owed+1, l.limit.Tolerance/l.limit.Interval)
	}
	return wait
}

// lease is a request that needs a token of another replica.
type lease struct {
	key   Key
	limit Limit
	ring  *Ring
	owner *Member
	shard *shard
	entry *entry
}

// batch is how many tokens are leased at once.
func (l *lease) batch() int64 {
	return min(int64(batchTime)/l.limit.Interval, l.limit.Tolerance/l.limit.Interval, maxWant)
}

// lease uses a leased token. If there is none, it asks for some and waits. The caller holds the mutex of the shard. It is not
// held while it waits.
func (q *Quota) lease(ctx context.Context, l *lease) time.Duration {
	var timer clock.Timer
	for {
		now := q.now()
		if wait, known := q.leased(l, now); known {
			return q.told(wait)
		}
		slow := q.slowUntil(l.owner.Connection)
		if now < slow.Load() {
			return q.decideLate(&q.late, l)
		}
		if !q.ask(l, max(l.batch(), l.entry.waiting+1)+l.entry.owed, now) {
			return q.decideLate(&q.full, l)
		}
		if timer == nil {
			timer = q.clock.NewTimer(MaxWait)
			defer timer.Stop()
		}
		if !l.wait(ctx, timer) {
			if ctx.Err() == nil {
				slow.Store(q.now() + int64(aloneTime))
			}
			return q.decideLate(&q.late, l)
		}
	}
}

// leased decides by what the owner has said before, if that still holds.
func (q *Quota) leased(l *lease, now int64) (wait time.Duration, known bool) {
	e := l.entry
	if e.tokens > 0 && now < e.expires {
		e.tokens--
		if batch := l.batch(); e.tokens < batch/2 && now >= e.refused {
			q.ask(l, batch, now) // for the requests to come
		}
		return 0, true
	}
	if now < e.refused && now < e.again {
		return time.Duration(e.refused - now), true
	}
	return 0, false
}

// ask sends an ask, if none is under way. It returns false if it cannot.
func (q *Quota) ask(l *lease, want, now int64) bool {
	e := l.entry
	if e.asking != nil && now-e.asked < int64(MaxWait) {
		return true
	}
	e.give()
	ask := Ask{Key: l.key, Limit: l.limit, Want: uint32(min(max(want, 1), maxWant))}
	if e.from != l.owner.Connection {
		ask.Ahead = max(e.next-now, 0)
	}
	if !l.owner.Peer.Ask(ask) {
		return false
	}
	q.asks.Add(1)
	e.asking, e.asked = make(chan struct{}), now
	return true
}

// give ends the wait for an answer.
func (e *entry) give() {
	if e.asking != nil {
		close(e.asking)
		e.asking = nil
	}
}

// wait waits for the answer. It returns false if there was none in time.
func (l *lease) wait(ctx context.Context, timer clock.Timer) bool {
	asking := l.entry.asking
	l.entry.waiting++
	l.shard.mu.Unlock()
	answered := true
	select {
	case <-asking:
	case <-timer.C():
		answered = false
	case <-ctx.Done():
		answered = false
	}
	l.shard.mu.Lock()
	l.entry.waiting--
	return answered
}

// slowUntil returns until when a peer is not waited for.
func (q *Quota) slowUntil(connection uint64) *atomic.Int64 {
	if until := (*q.slow.Load())[connection]; until != nil {
		return until
	}
	return new(atomic.Int64) // the ring has just changed
}
