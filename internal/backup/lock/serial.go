package lock

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// recheckSerial is when to look again while another reconcile makes a Job: that takes a few requests.
const recheckSerial = 100 * time.Millisecond

// Serial lets one reconcile of this process at a time make a Job for a subject. The zero value lets any begin.
type Serial struct {
	mu    sync.Mutex
	taken map[types.NamespacedName]bool
}

// enter takes a subject, until leave. While another reconcile has it, there is nothing to say but that it is tried again.
func (s *Serial) enter(subject Subject) (leave func(), err error) {
	if s == nil {
		return func() {}, nil
	}
	key := types.NamespacedName{Namespace: subject.Namespace, Name: subject.Lease}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[key] {
		return nil, &outcome.Error{Kind: outcome.Quiet, Message: subject.called() + ": another Job is being made", After: recheckSerial}
	}
	if s.taken == nil {
		s.taken = map[types.NamespacedName]bool{}
	}
	s.taken[key] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.taken, key)
	}, nil
}
