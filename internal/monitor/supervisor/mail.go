package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errInterrupted ends a watch because there is something to tell the follower. The watch then goes on where it ended.
var errInterrupted = errors.New("interrupted")

// mail is what a follower is told from outside. It is safe for concurrent use, and telling it something does not wait.
type mail struct {
	// woken gets a value when a waiting follower should try again at once.
	woken chan struct{}

	mutex     sync.Mutex
	update    *definedAs
	leaving   bool
	edited    time.Time
	interrupt context.CancelCauseFunc
}

// definedAs is how the objects of a kind are defined.
type definedAs struct {
	schema     packed
	generation int64
	made       time.Time
	noStatus   bool
}

func (d definedAs) unpack() (Schema, error) {
	schema, err := d.schema.unpack()
	return Schema{JSON: schema, Generation: d.generation, Made: d.made, NoStatus: d.noStatus}, err
}

func newMail() *mail { return &mail{woken: make(chan struct{}, 1)} }

// wake lets a follower that waits try again.
func (m *mail) wake() {
	select {
	case m.woken <- struct{}{}:
	default: // it has been woken already
	}
}

// define tells that the definition has another schema. A watch that runs is not interrupted: the API server ends it itself,
// after what it still has to send.
func (m *mail) define(as definedAs) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.update = &as
}

// edit tells when the definition was edited, whatever has changed in it.
func (m *mail) edit(at time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.edited = at
}

// lastEdit returns when the definition was edited, zero when it was not.
func (m *mail) lastEdit() time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.edited
}

// insist interrupts a watch that goes on though there is another schema.
func (m *mail) insist() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.interrupt != nil && m.update != nil {
		m.interrupt(errInterrupted)
	}
}

// takeUpdate returns another schema, if there is one, and forgets it.
func (m *mail) takeUpdate() *definedAs {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	update := m.update
	m.update = nil
	return update
}

// leave tells that the follower is to end: what the API server still sends is read, and nothing is begun any more.
func (m *mail) leave() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.leaving = true
	m.wake()
}

func (m *mail) isLeaving() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.leaving
}

// watching says how to interrupt the watch that begins, nil when it ends.
func (m *mail) watching(interrupt context.CancelCauseFunc) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.interrupt = interrupt
}
