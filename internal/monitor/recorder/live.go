package recorder

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// Update is what was stored of one object, or of a kind when it has no UID.
type Update struct {
	Kind      change.Kind
	Namespace string
	Name      string
	UID       types.UID
	Records   []change.Record
	// Health is how the object does now, without a state when it is gone, and HealthBefore how it did.
	Health       health.Verdict
	HealthBefore health.State
}

// ErrEnded is returned by Next when the recorder has ended.
var ErrEnded = errors.New("the recorder has ended")

// live gives updates to who wants them. Nobody waits for a reader.
type live struct {
	mutex   sync.Mutex
	ended   bool
	readers []*Subscription
}

// Subscription is one reader of updates. One goroutine uses it.
type Subscription struct {
	live   *live
	wants  func(*Update) bool
	length int

	mutex   sync.Mutex
	waiting []Update
	missed  int64
	ended   bool
	woken   chan struct{}
}

// Subscribe begins to collect what is stored from now on, as far as wants returns true for it. Wants is called by who stores: it must
// be quick, and not use the store. Up to length updates wait for the reader; those that come when there is no room are counted
// as missed. Close ends it.
func (r *Recorder) Subscribe(length int, wants func(*Update) bool) *Subscription {
	s := &Subscription{live: &r.live, wants: wants, length: max(length, 1), woken: make(chan struct{}, 1)}
	r.live.mutex.Lock()
	defer r.live.mutex.Unlock()
	s.ended = r.live.ended
	r.live.readers = append(r.live.readers, s)
	return s
}

// Next waits for updates and returns all that are there, and how many came after them and were missed. Its error is that of the context,
// or ErrEnded.
func (s *Subscription) Next(ctx context.Context) (updates []Update, missed int64, err error) {
	for {
		s.mutex.Lock()
		updates, missed = s.waiting, s.missed
		s.waiting, s.missed = nil, 0
		ended := s.ended
		s.mutex.Unlock()
		if len(updates) > 0 || missed > 0 {
			return updates, missed, nil
		}
		if ended {
			return nil, 0, ErrEnded
		}
		select {
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		case <-s.woken:
		}
	}
}

// Close ends the subscription.
func (s *Subscription) Close() {
	s.live.mutex.Lock()
	defer s.live.mutex.Unlock()
	s.live.readers = slices.DeleteFunc(s.live.readers, func(other *Subscription) bool { return other == s })
}

// put adds an update, or counts it. After one that was missed nothing is added until the reader was told.
func (s *Subscription) put(u *Update) {
	if s.wants != nil && !s.wants(u) {
		return
	}
	s.mutex.Lock()
	if s.missed > 0 || len(s.waiting) >= s.length {
		s.missed++
	} else {
		s.waiting = append(s.waiting, *u)
	}
	s.mutex.Unlock()
	s.wake()
}

func (s *Subscription) wake() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// publish tells all readers. It waits for none.
func (l *live) publish(updates []Update) {
	if len(updates) == 0 {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, reader := range l.readers {
		for i := range updates {
			reader.put(&updates[i])
		}
	}
}

// end tells all readers that nothing comes any more.
func (l *live) end() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.ended = true
	for _, reader := range l.readers {
		reader.mutex.Lock()
		reader.ended = true
		reader.mutex.Unlock()
		reader.wake()
	}
}
