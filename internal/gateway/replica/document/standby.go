package document

import "time"

// word is the operator's instruction to a stale gateway: whether other replicas are
// current, so that this one is not needed.
type word struct {
	standby bool
	// held means that the operator still waits for the answer. Otherwise the instruction
	// ends at ends.
	held bool
	ends time.Time
}

// Standby reports whether the gateway should accept no new connections: its view is stale,
// and the operator has said that other replicas are current. until is when this ends by
// itself. It is zero while the operator waits for an answer. changed is closed when the
// result may change before until.
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

// hear records an instruction. The caller calls the returned function when the operator no
// longer waits. An instruction to a gateway that is not stale is ignored, because it is
// about an earlier state.
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

// replaceWord needs the mutex held.
func (b *Board) replaceWord(next word) {
	if b.word == (word{}) && next == (word{}) {
		return
	}
	b.word = next
	b.given++
	close(b.heard)
	b.heard = make(chan struct{})
}
