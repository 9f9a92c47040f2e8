package quota

import (
	"sync"
	"time"
)

const (
	shards = 16
	// maxKeys bounds the keys of a shard. In total there are 16 × 8192, which take about 20 MB.
	maxKeys = 8192
)

// ledger is what is known of each key.
type ledger struct {
	shards [shards]shard
}

type shard struct {
	mu      sync.Mutex
	entries map[Key]*entry
	swept   int64 // when makeRoom last looked at all keys
}

// entry is what is known of a key. All times are nanoseconds since the start.
type entry struct {
	limit Limit
	// next is when the next request would be exactly on time: as this replica counts if it owns the key or counts alone, and
	// otherwise as the owner last said.
	next int64
	// from is the connection to the owner that said next. 0 if this replica counted.
	from uint64

	tokens  int64  // leased from the owner
	expires int64  // when the tokens do
	owed    int64  // requests that were allowed while an answer was late. Tokens pay for them first
	owedTo  uint64 // the connection by which the answer was to come
	refused int64  // until when the owner gives none
	again   int64  // when to ask again though it gives none

	asked  int64         // when the ask that is under way was sent
	asking chan struct{} // closed when it was answered, or given up. nil: none is under way
	// waiting are the requests that wait for the answer.
	waiting int64
}

// idle reports whether the entry says no more than a new one would.
func (e *entry) idle(now int64) bool {
	return e.next <= now && e.refused <= now && (e.tokens == 0 || e.expires <= now) && e.waiting == 0 && e.owed == 0
}

func newLedger() *ledger {
	l := &ledger{}
	for i := range l.shards {
		l.shards[i].entries = map[Key]*entry{}
	}
	return l
}

// shard returns the shard of a key. The owner is chosen by other bits.
func (l *ledger) shard(key Key) *shard { return &l.shards[key[15]%shards] }

// get returns the entry of a key. It makes one if there is none. The caller holds the mutex.
func (s *shard) get(key Key, limit Limit, now int64) *entry {
	if e := s.entries[key]; e != nil {
		return e
	}
	if len(s.entries) >= maxKeys {
		s.makeRoom(now)
	}
	e := &entry{limit: limit}
	s.entries[key] = e
	return e
}

// makeRoom removes keys that have been quiet long enough to have their full limit again. It looks for such keys at most once
// per second. If there is none, it removes another key. So a client with many addresses can make others start anew, and can
// neither lock them out nor make the gateway count nothing.
func (s *shard) makeRoom(now int64) {
	if now-s.swept >= int64(time.Second) {
		s.swept = now
		for key, e := range s.entries {
			if e.idle(now) {
				delete(s.entries, key)
			}
		}
	}
	for key := range s.entries {
		if len(s.entries) < maxKeys {
			return
		}
		delete(s.entries, key)
	}
}
