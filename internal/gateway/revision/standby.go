package revision

import "time"

// word is what the operator says to a gateway that is stale: that others are current, so
// that nobody needs it.
type word struct {
	standby bool
	// held: whoever gave it still waits for the answer. Otherwise it ends by itself.
	held bool
	ends time.Time
}

// Standby tells whether the gateway is to take no new connections: its view is stale, and
// the operator has said that others are current. until is when this ends by itself, zero: not
// while whoever said so waits for an answer. changed is closed when it may be otherwise
// before that.
func (b *Board) Standby() (standby bool, until time.Time, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.word.standby || !b.current.Stale():
		return false, time.Time{}, b.heard
	case b.word.held:
		return true, time.Time{}, b.heard
	case b.clock.Now().Before(b.word.ends):
		return true, b.word.ends, b.heard
	default:
		return false, time.Time{}, b.heard
	}
}

// hear notes a word. The function that it returns is to be called when whoever gave it
// waits no longer. What is said to a gateway that is not stale is said of something else.
func (b *Board) hear(standby bool) (answered func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.current.Stale() {
		return func() {}
	}
	b.replaceWord(word{standby: standby, held: true})
	mine := b.given
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.given == mine {
			b.replaceWord(word{standby: standby, ends: b.clock.Now().Add(WordHolds)})
		}
	}
}

// replaceWord needs the mutex.
func (b *Board) replaceWord(next word) {
	if b.word == (word{}) && next == (word{}) {
		return
	}
	b.word = next
	b.given++
	close(b.heard)
	b.heard = make(chan struct{})
}
