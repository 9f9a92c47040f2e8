package lock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// recheckTurn is when to look again while another reconcile makes a Job: that takes a few requests.
const recheckTurn = 100 * time.Millisecond

// Turns are the subjects for which reconciles of this process make Jobs right now. The zero value has none.
type Turns struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]bool
}

// enter takes the turn of a subject, until leave. While another one has it, there is nothing to say but that it is tried again.
func (t *Turns) enter(subject Subject) (leave func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	key := types.NamespacedName{Namespace: subject.Namespace, Name: subject.Lease}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[key] {
		return nil, &outcome.Error{Kind: outcome.Quiet, Message: subject.called() + ": another Job is being made", After: recheckTurn}
	}
	if t.taken == nil {
		t.taken = map[types.NamespacedName]bool{}
	}
	t.taken[key] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.taken, key)
	}, nil
}
