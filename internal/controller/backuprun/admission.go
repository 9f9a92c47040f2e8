package backuprun

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// admission bounds how many runs have a pod at a time: hundreds that are due in one minute would take all places of a node. queue says
// who comes next. What is remembered is lost with the process: then the runs that are Running are admitted, and the others come anew.
type admission struct {
	mu    sync.Mutex
	queue *queue
	// begun reports whether those that were running when the operator began have their places.
	begun bool
	// wake enqueues a run that may be admitted now.
	wake func(types.NamespacedName)
}

func newAdmission(limit int) *admission {
	return &admission{queue: newQueue(limit), wake: func(types.NamespacedName) {}}
}

// notify sets what wakes a run that may be admitted.
func (a *admission) notify(wake func(types.NamespacedName)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake = wake
}

// begin gives those a place that ran before the operator began. It is asked for them once.
func (a *admission) begin(running func() ([]types.NamespacedName, error)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun {
		return nil
	}
	keys, err := running()
	if err != nil {
		return err
	}
	for _, key := range keys {
		a.queue.enter(key, true, time.Time{})
	}
	a.begun = true
	return nil
}

// enter reports whether a run is admitted. One that works already is, whatever the limit. Where it is not, after is when to ask
// again though nobody wakes it: zero where somebody else comes first, who will ask.
func (a *admission) enter(key types.NamespacedName, works bool, now time.Time) (entered bool, after time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue.enter(key, works, now) {
		a.wakeNext(now)
		return true, 0
	}
	next, after, _ := a.queue.next(now)
	if next == key {
		return false, max(0, after)
	}
	if after == 0 {
		a.wake(next)
	}
	return false, 0
}

// leave ends the admission of a run, or its wait for one, and wakes the next one.
func (a *admission) leave(key types.NamespacedName, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue.leave(key) {
		a.wakeNext(now)
	}
}

// wakeNext wakes who gets the next place, though that may be later: it asks again when the time has come.
func (a *admission) wakeNext(now time.Time) {
	if key, after, ok := a.queue.next(now); ok && after >= 0 {
		a.wake(key)
	}
}

// why is what the status of a run says that waits for admission. It is true as long as it waits.
func (a *admission) why() string {
	return fmt.Sprintf("its turn has not come: places for %d runs go round the namespaces of the cluster, and a namespace takes another "+
		"one only while more are free than it has", a.queue.limit)
}

func keyOf(run *slipwayv1alpha1.BackupRun) types.NamespacedName {
	return client.ObjectKeyFromObject(run)
}

// wait lets a run begin when no other one of its Backup is under way, and when it is admitted.
func (r *Reconciler) wait(ctx context.Context, s *scope, now time.Time) error {
	runs, works := s.run.Status.Phase == slipwayv1alpha1.BackupRunning, s.works()
	if !s.backup.DeletionTimestamp.IsZero() && !works && s.current < len(s.volumes) {
		return outcome.Waitingf(
			0, slipwayv1alpha1.ReasonTerminating, "Backup %q is being deleted: no copy is made for it any more", s.backup.Name,
		)
	}
	if !runs {
		if earlier := s.earlier(); earlier != "" {
			return outcome.Waitingf(0, slipwayv1alpha1.ReasonQueued, "BackupRun %q of the same Backup has not ended yet", earlier)
		}
		if left := s.run.Status.AttemptTime; left != nil && left.After(now) {
			return outcome.Waitingf(left.Sub(now), slipwayv1alpha1.ReasonRetrying, "another attempt begins soon")
		}
	}
	if err := r.admission.begin(func() ([]types.NamespacedName, error) { return r.running(ctx) }); err != nil {
		return err
	}
	entered, after := r.admission.enter(keyOf(s.run), works, now)
	if s.queued = !entered; s.queued {
		s.recheck.After(after)
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonQueued, "%s", r.admission.why())
	}
	return nil
}

// running are the runs that are under way, as the cache has them.
func (r *Reconciler) running(ctx context.Context) ([]types.NamespacedName, error) {
	runs := &slipwayv1alpha1.BackupRunList{}
	if err := r.kit.Client.List(ctx, runs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BackupRuns: %w", err)
	}
	var keys []types.NamespacedName
	for i := range runs.Items {
		if run := &runs.Items[i]; run.Status.Phase == slipwayv1alpha1.BackupRunning && run.DeletionTimestamp.IsZero() {
			keys = append(keys, keyOf(run))
		}
	}
	return keys, nil
}

// works reports whether a run has a pod, or holds something that nobody may be made to wait for: a workload, or a snapshot.
func (s *scope) works() bool {
	ofJob := func(job *batchv1.Job) bool { return job.UID != "" && !health.Job(job).Terminal }
	return ofJob(s.job) || slices.ContainsFunc(s.jobs, func(job batchv1.Job) bool { return ofJob(&job) }) ||
		s.snapshot.UID != "" || s.staging != nil || hook.Pending(s.hooks)
}

// yield ends the admission of a run that has nothing to do with it: what it needs is missing, another Job writes to the repository, or
// the next attempt is still to come. It comes again when there is something new. One that waits for admission goes on waiting.
func (r *Reconciler) yield(s *scope) {
	goesOn := s.err == nil && s.next.Phase == slipwayv1alpha1.BackupRunning
	if !s.queued && !goesOn && !s.works() {
		r.admission.leave(keyOf(s.run), r.kit.Clock.Now())
	}
}

// earlier names a run of the same Backup that has not ended and comes first, or is empty.
func (s *scope) earlier() string {
	for i := range s.siblings {
		other := &s.siblings[i]
		if other.UID == s.run.UID || other.Ended() {
			continue
		}
		if !other.DeletionTimestamp.IsZero() && !hook.Pending(other.Status.Hooks) {
			continue // one with a pending hook would release what this one holds
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
