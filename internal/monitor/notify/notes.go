package notify

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// maxNoteWait is how long it takes at most until it is tried again to note something.
const maxNoteWait = 30 * time.Second

// notes are what came of attempts and the outbox does not take: its disk is full, for example. They are remembered until it does, so that
// nothing is sent again, or sooner, because it could not be noted. No more are there than messages were in the outbox: who cannot note
// anything takes no further message.
type notes struct {
	mutex sync.Mutex
	// gone are messages that were delivered or given up, and failed those that are tried again.
	gone   map[int64]bool
	failed map[int64]attempt
	// tries is how often it was tried in vain to note them, and next when to try again.
	tries int
	next  time.Time
}

// attempt is how often a message was tried, and when it may be tried again.
type attempt struct {
	attempts int
	next     time.Time
}

func (n *notes) size() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.gone) + len(n.failed)
}

// keep remembers what could not be noted. It reports whether it is the first.
func (n *notes) keep(id int64, a *attempt, next time.Time) (first bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	first = len(n.gone)+len(n.failed) == 0
	if first {
		n.gone, n.failed, n.next = map[int64]bool{}, map[int64]attempt{}, next
	}
	if a == nil {
		n.gone[id] = true
		delete(n.failed, id)
	} else if !n.gone[id] {
		n.failed[id] = *a
	}
	return first
}

// due returns the messages that may be tried now, as far as the outbox does not know it yet, and when the first of the others may be.
func (n *notes) due(messages []store.Message, now time.Time) (due []store.Message, next time.Time) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, m := range messages {
		a, failed := n.failed[m.ID]
		switch {
		case n.gone[m.ID]:
			continue
		case failed && a.next.After(now):
			if next.IsZero() || a.next.Before(next) {
				next = a.next
			}
			continue
		case failed:
			m.Attempts = max(m.Attempts, a.attempts)
		}
		due = append(due, m)
	}
	return due, next
}

// settle tries to note what could not be, when its time has come, and returns how long to wait then.
func (s *Sender) settle(ctx context.Context, last bool) time.Duration {
	n, now := &s.notes, s.options.Clock.Now()
	n.mutex.Lock()
	all := len(n.gone) + len(n.failed)
	gone, failed, wait := slices.Sorted(maps.Keys(n.gone)), maps.Clone(n.failed), n.next.Sub(now)
	n.mutex.Unlock()
	if all == 0 {
		return idle
	}
	if wait > 0 && !last {
		return wait
	}
	var err error
	if len(gone) > 0 {
		err = s.options.Outbox.Delivered(ctx, gone...)
	}
	if err == nil {
		n.dropGone(gone)
	}
	for id, a := range failed {
		if err != nil {
			break
		}
		if err = s.options.Outbox.Failed(ctx, id, a.next); err == nil {
			n.dropFailed(id, a)
		}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err == nil {
		n.tries = 0
		s.options.Log.Info("what came of messages is noted again", "messages", all)
		return firstWait
	}
	wait = min(firstWait<<min(n.tries, 10), maxNoteWait)
	n.tries++
	n.next = now.Add(wait)
	return wait
}

// dropGone forgets messages of which it is noted that they are gone. Nothing else comes of them.
func (n *notes) dropGone(ids []int64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, id := range ids {
		delete(n.gone, id)
		delete(n.failed, id)
	}
}

// dropFailed forgets an attempt that is noted, and nothing that came of the message meanwhile: that is noted the next time.
func (n *notes) dropFailed(id int64, noted attempt) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.failed[id] == noted {
		delete(n.failed, id)
	}
}

// note notes what came of an attempt: the message is gone, or it is tried again. While something could not be noted, it is not tried with
// each message.
func (s *Sender) note(ctx context.Context, output string, m *store.Message, a *attempt) {
	if s.notes.size() > 0 {
		s.notes.keep(m.ID, a, s.options.Clock.Now().Add(firstWait))
		return
	}
	var err error
	if a == nil {
		err = s.options.Outbox.Delivered(ctx, m.ID)
	} else {
		err = s.options.Outbox.Failed(ctx, m.ID, a.next)
	}
	if err != nil && s.notes.keep(m.ID, a, s.options.Clock.Now().Add(firstWait)) {
		s.options.Log.Error(
			"cannot note what came of messages; it is remembered until the store takes it", "output", output, "key", m.Key, "error", err,
		)
	}
}
