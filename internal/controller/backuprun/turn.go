package backuprun

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/hook"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// turns bounds how many runs have a pod at a time: hundreds that are due in one minute would take all places of a node. Runs
// wait in the order in which they came. What is remembered is lost with the process: then the runs that are Running have
// their turn, and the others come anew.
type turns struct {
	limit int

	mu      sync.Mutex
	running map[types.NamespacedName]bool
	waiting []types.NamespacedName
	// tell enqueues a run whose turn has come.
	tell func(types.NamespacedName)
}

func newTurns(limit int) *turns {
	return &turns{limit: limit, running: map[types.NamespacedName]bool{}, tell: func(types.NamespacedName) {}}
}

// notify says whom to tell whose turn has come.
func (t *turns) notify(tell func(types.NamespacedName)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell = tell
}

// enter tells whether it is a run's turn. One that runs already has it, whatever the limit.
func (t *turns) enter(key types.NamespacedName, runs bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := len(t.waiting) == 0 || t.waiting[0] == key
	if t.running[key] || runs || (first && len(t.running) < t.limit) {
		t.running[key] = true
		t.drop(key)
		t.tellNext()
		return true
	}
	if !slices.Contains(t.waiting, key) {
		t.waiting = append(t.waiting, key)
	}
	return false
}

// leave ends the turn of a run, and tells the next one.
func (t *turns) leave(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, key)
	t.drop(key)
	t.tellNext()
}

func (t *turns) drop(key types.NamespacedName) {
	if i := slices.Index(t.waiting, key); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

func (t *turns) tellNext() {
	if len(t.waiting) > 0 && len(t.running) < t.limit {
		t.tell(t.waiting[0])
	}
}

func keyOf(run *slipwayv1alpha1.BackupRun) types.NamespacedName {
	return client.ObjectKeyFromObject(run)
}

// wait lets a run begin when no other one of its Backup is under way, and when it is its turn.
func (r *Reconciler) wait(s *scope, now time.Time) error {
	runs := s.run.Status.Phase == slipwayv1alpha1.BackupRunning
	if !s.backup.DeletionTimestamp.IsZero() && s.job.UID == "" && s.current < len(s.volumes) {
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating, "Backup %q is being deleted: no copy is made for it any more", s.backup.Name)
	}
	if !runs {
		if earlier := s.earlier(); earlier != "" {
			return outcome.Waitingf(0, slipwayv1alpha1.ReasonQueued, "BackupRun %q of the same Backup has not ended yet", earlier)
		}
		if left := s.run.Status.AttemptTime; left != nil && left.After(now) {
			return outcome.Waitingf(left.Sub(now), slipwayv1alpha1.ReasonRetrying, "another attempt begins soon")
		}
	}
	if !r.turns.enter(keyOf(s.run), runs) {
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonQueued, "as many runs as may run at a time are under way in the cluster")
	}
	return nil
}

// earlier names a run of the same Backup that has not ended and comes first, or is empty.
func (s *scope) earlier() string {
	for i := range s.siblings {
		other := &s.siblings[i]
		if other.UID == s.run.UID || other.Ended() {
			continue
		}
		if !other.DeletionTimestamp.IsZero() && !hook.Owed(other.Status.Hooks) {
			continue // one that owes a hook would release what this one holds
		}
		if other.Status.Phase == slipwayv1alpha1.BackupRunning || before(other, s.run) {
			return other.Name
		}
	}
	return ""
}

func before(a, b *slipwayv1alpha1.BackupRun) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
