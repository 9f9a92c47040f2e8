package document

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxWait bounds how long an answer is held back.
const maxWait = 30 * time.Second

// Board publishes the current Document. It is safe for concurrent use.
type Board struct {
	clock clock.Clock

	mu      sync.Mutex
	current Document
	changed chan struct{} // closed when current is replaced

	// word is the operator's last instruction. given counts the instructions.
	word  word
	given int
	heard chan struct{} // closed when word is replaced, or when it may have another effect
}

// NewBoard returns a Board on which nothing is served yet. version is the version of the
// program.
func NewBoard(clock clock.Clock, version string) *Board {
	return &Board{
		clock:   clock,
		current: Document{Protocol: Protocol, Version: version, Revision: clock.Now().UnixMicro()},
		changed: make(chan struct{}),
		heard:   make(chan struct{}),
	}
}

// Publish replaces the document. The Board sets Protocol, Version and Revision. If the
// document has nothing new, nothing changes.
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

// Current returns the document. The caller must not change what it refers to.
func (b *Board) Current() Document {
	document, _ := b.look()
	return document
}

func (b *Board) look() (Document, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.current, b.changed
}

// ServeHTTP answers GET /revision with the current document. GET /revision?wait=N is held
// back until the revision is not N, at most for 30 s. POST does the same. With
// InstructionHeader, ?standby=true or false also gives an instruction. Nothing else does:
// whoever can make a program fetch an address, or send a form to it, could give one.
func (b *Board) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.Header.Get(InstructionHeader) != "" {
		standby, err := strconv.ParseBool(r.URL.Query().Get(StandbyParameter))
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

// wait waits for a change, at most for maxWait. It returns false if the client has gone.
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
