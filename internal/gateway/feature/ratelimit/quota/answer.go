package quota

import (
	"sync/atomic"
	"time"
)

// SetRing replaces the ring. The caller must not change it any more. What this replica knows of keys that it owned goes to
// their new owners.
func (q *Quota) SetRing(ring *Ring) {
	ring.prepare()
	slow := map[uint64]*atomic.Int64{}
	for _, member := range ring.Members {
		if member.Peer == nil {
			continue
		}
		slow[member.Connection] = new(atomic.Int64)
		if before := q.slow.Load(); before != nil && (*before)[member.Connection] != nil {
			slow[member.Connection] = (*before)[member.Connection]
		}
	}
	q.slow.Store(&slow)
	before := q.ring.Swap(ring)
	if before != nil && !before.sameMembers(ring) {
		q.handOver(ring)
	}
}

// handOver sends what this replica has counted to the owners. They are asked for nothing.
func (q *Quota) handOver(ring *Ring) {
	now := q.now()
	for i := range q.ledger.shards {
		q.ledger.shards[i].handOver(ring, now)
	}
}

func (s *shard) handOver(ring *Ring, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, e := range s.entries {
		if e.from != 0 || e.next <= now {
			continue
		}
		owner := ring.owner(key)
		if owner == nil || owner.Peer == nil || !owner.Peer.Ask(Ask{Key: key, Limit: e.limit, Ahead: e.next - now}) {
			continue
		}
		e.from = owner.Connection
	}
}

// Answer answers an ask of another replica. It returns false if there is no answer, because nothing was asked for.
func (q *Quota) Answer(ask Ask) (Answer, bool) {
	if !ask.Limit.Valid() {
		return Answer{}, false
	}
	ring := q.ring.Load()
	s := q.ledger.shard(ask.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := q.now()
	e := s.get(ask.Key, ask.Limit, now)
	if ahead := min(ask.Ahead, ask.Limit.Tolerance); ahead > 0 {
		e.next = max(e.next, now+ahead)
	}
	if ask.Want == 0 {
		return Answer{}, false
	}
	granted, next, wait := ring.own(ask.Limit).Grant(e.next, now, int64(min(ask.Want, maxWant)))
	e.next, e.from = next, 0
	return Answer{Key: ask.Key, Granted: uint32(granted), Wait: wait, Ahead: max(next-now, 0)}, true
}

// Answered takes an answer that came by a connection.
func (q *Quota) Answered(connection uint64, answer Answer) {
	s := q.ledger.shard(answer.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[answer.Key]
	if e == nil {
		return // it was removed to make room
	}
	now := q.now()
	if e.expires <= now {
		e.tokens = 0
	}
	if e.owedTo != connection {
		e.owed = 0
	}
	paid := min(e.owed, int64(answer.Granted))
	e.owed -= paid
	e.tokens = min(e.tokens+int64(answer.Granted)-paid, 2*maxWant)
	e.expires = now + int64(leaseTime)
	e.refused, e.again = 0, 0
	if answer.Wait > 0 {
		e.refused, e.again = now+int64(min(answer.Wait, time.Duration(maxTolerance))), now+int64(refusalTime)
	}
	e.next, e.from = now+min(max(answer.Ahead, 0), e.limit.Tolerance), connection
	e.give()
}
