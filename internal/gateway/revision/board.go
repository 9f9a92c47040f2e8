package revision

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxWait is how long an answer is held at most.
const maxWait = 30 * time.Second

// Board shows the current Document. It is safe for concurrent use.
type Board struct {
	clock clock.Clock

	mu      sync.Mutex
	current Document
	changed chan struct{} // closed when current is replaced

	// word is what the operator last said, and given how often it has said something.
	word  word
	given int
	heard chan struct{} // closed when word is replaced, or what it says may mean something else
}

// NewBoard returns a Board that says that nothing is served yet. version is the one of
// the program.
func NewBoard(clock clock.Clock, version string) *Board {
	return &Board{
		clock:   clock,
		current: Document{Protocol: Protocol, Version: version, Revision: clock.Now().UnixMicro()},
		changed: make(chan struct{}),
		heard:   make(chan struct{}),
	}
}

// Publish shows another document. Protocol, version and revision are the Board's; a
// document that says nothing new changes nothing.
func (b *Board) Publish(next Document) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current.Same(next) {
		return
	}
	next.Protocol, next.Version, next.Revision = b.current.Protocol, b.current.Version, b.current.Revision+1
	b.current = next
	close(b.changed)
	b.changed = make(chan struct{})
	if !next.Stale() {
		b.replaceWord(word{})
	}
}

// Current returns the document. Nobody may change what it refers to.
func (b *Board) Current() Document {
	document, _ := b.look()
	return document
}

func (b *Board) look() (Document, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current, b.changed
}

// ServeHTTP answers GET /revision with the current document, and GET /revision?wait=N as
// soon as its revision is not N, but after 30 s in any case. With ?standby=true or false the
// operator gives its word beside.
func (b *Board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if text := r.URL.Query().Get(StandbyParameter); text != "" {
		standby, err := strconv.ParseBool(text)
		if err != nil {
			http.Error(w, StandbyParameter+" must be true or false", http.StatusBadRequest)
			return
		}
		defer b.hear(standby)()
	}
	document, changed := b.look()
	if text := r.URL.Query().Get("wait"); text != "" {
		seen, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			http.Error(w, "wait must be the revision that was seen last", http.StatusBadRequest)
			return
		}
		if document.Revision == seen && !b.wait(r.Context(), changed) {
			return
		}
		document = b.Current()
	}
	body, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(body, '\n'))
}

// wait waits for a change, as long as somebody waits for the answer and not for too long.
func (b *Board) wait(ctx context.Context, changed <-chan struct{}) bool {
	timer := b.clock.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C():
	}
	return true
}
