package backuprun

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

const (
	// finalizerHooks holds a run whose after hooks are pending.
	finalizerHooks = "slipway.dev/backup-hooks"
	// holdLimit is how long a run that is deleted may be held: what the longest command takes, and some tries.
	holdLimit = 20 * time.Minute
	// staleRecheck is when to look again after the cache was found to be behind.
	staleRecheck = time.Second
)

// runHooks has the commands run that the stored status asks for, and notes how they ended. Only what is stored counts: what
// a crash could make the operator forget is not begun.
func (r *Reconciler) runHooks(s *scope, now time.Time) {
	owner := keyOf(s.run)
	calls, wait := hook.Due(s.run.Status.Hooks, now)
	canceling := r.calls.Keep(owner, func(c call) bool { return c.run == s.run.UID && slices.Contains(calls, c.Call) })
	s.recheck.After(wait)
	if canceling {
		return // a before hook must have ended when the after hook begins; the end of it is an event
	}
	for _, due := range calls {
		if r.exec == nil {
			hook.Note(s.hooks, due, hook.Ended{
				Phase: slipwayv1alpha1.HookFailed, Reason: slipwayv1alpha1.ReasonHooksDisabled, Message: hooksDisabled, Final: true,
			}, now)
			continue
		}
		asked := call{run: s.run.UID, Call: due}
		ended, ok := r.calls.Ask(owner, asked, func(ctx context.Context) hook.Ended { return r.do(ctx, owner, asked) })
		switch {
		case ok && ended.Phase == "":
			r.calls.Keep(owner, func(c call) bool { return c != asked })
			s.recheck.After(staleRecheck)
		case ok:
			hook.Note(s.hooks, due, ended, now)
		}
	}
}

// hooksDisabled is said of hooks that the operator does not run.
const hooksDisabled = "spec.hooks of the Backup: this operator runs no commands in pods; whoever installs it can let it, with " +
	"--backup-hooks"

// quiesce has the before hooks run in the pods of a volume, and reports whether it may be read.
func (r *Reconciler) quiesce(ctx context.Context, s *scope, claim string, now time.Time) (ready bool, err error) {
	stored := s.run.Status.Hooks
	if hook.Pending(s.hooks) {
		held := hook.IsOf(stored, claim, s.attempt()) && stored.Phase == slipwayv1alpha1.HooksHeld
		return held && s.hooks.Phase == slipwayv1alpha1.HooksHeld && !s.cut(), nil // cut: the after hook comes before the Job
	}
	if s.snapshot.UID != "" {
		return true, nil // it was asked for: what is done to the workload now does not reach it
	}
	if s.backup.Spec.Hooks == nil {
		return true, nil
	}
	if r.exec == nil {
		return false, outcome.Invalidf(slipwayv1alpha1.ReasonHooksDisabled, "%s", hooksDisabled)
	}
	if hook.IsOf(s.hooks, claim, s.attempt()) && hook.BeforeTrouble(s.hooks) != nil {
		return false, nil // judge ends the attempt
	}
	pods, err := r.podsWith(ctx, s, claim)
	if err != nil {
		return false, err
	}
	targets, trouble := hook.Targets(pods, claim, s.backup.Spec.Hooks)
	switch {
	case trouble != nil:
		return false, outcome.Invalidf(trouble.Reason, "%s", trouble.Message)
	case len(targets) == 0:
		return true, nil
	}
	if err := r.free(ctx, s, targets); err != nil {
		return false, err
	}
	if s.backup.Spec.Hooks.After != nil {
		if err := r.finalizer.Add(ctx, s.run); err != nil {
			return false, err
		}
	}
	s.hooks = hook.Begin(s.hooks, claim, s.attempt(), s.backup.Spec.Hooks, targets, now)
	return false, nil
}

// free waits for another run that holds one of the pods: its after hook would release what this run is to hold.
func (r *Reconciler) free(ctx context.Context, s *scope, targets []hook.Target) error {
	runs := &slipwayv1alpha1.BackupRunList{}
	if err := r.kit.Client.List(ctx, runs, client.InNamespace(s.run.Namespace)); err != nil {
		return outcome.Classify("the BackupRuns of the namespace", err)
	}
	for i := range runs.Items {
		other := &runs.Items[i]
		if other.UID == s.run.UID || !hook.Pending(other.Status.Hooks) {
			continue
		}
		for _, pod := range other.Status.Hooks.Pods {
			if slices.Contains(targets, hook.Target{Pod: pod.Pod, UID: pod.UID}) {
				return outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonQueued,
					"the hooks of BackupRun %q hold a pod of the volume", other.Name)
			}
		}
	}
	return nil
}

// podsWith are the pods of the namespace that have a claim, past the cache, which has only those that Slipway made.
func (r *Reconciler) podsWith(ctx context.Context, s *scope, claim string) ([]corev1.Pod, error) {
	pods, err := transfer.Pods(ctx, r.kit.Live, s.run.Namespace, transfer.Mount(claim))
	if err != nil {
		return nil, outcome.Classify("the pods that use the volume", err)
	}
	return pods, nil
}

// hookTrouble is why the hooks end the present attempt, or nil. A Job that went on after the workload had been released has
// read what nobody held, and a snapshot that was not cut before holds such a volume.
func (s *scope) hookTrouble() *health.Trouble {
	if s.current == len(s.volumes) || !hook.IsOf(s.hooks, s.volumes[s.current].Claim, s.attempt()) {
		return nil
	}
	if trouble := hook.BeforeTrouble(s.hooks); trouble != nil {
		return trouble
	}
	if !hook.Pending(s.hooks) && !s.hooks.Captured && (s.job.UID != "" || s.snapshot.UID != "") && s.seen.State != mover.Failed {
		return &health.Trouble{
			Reason: slipwayv1alpha1.ReasonHookInterrupted, Message: "the after hook ran before the volume had been read",
		}
	}
	return nil
}

// settle has the after hooks run once the volume has been read or the attempt is over, and lets no attempt end before they
// have.
func (r *Reconciler) settle(ctx context.Context, s *scope, now time.Time) {
	if !hook.Pending(s.hooks) {
		return
	}
	leaves := s.next.Ended() || s.next.Attempt != s.attempt()
	read := captured(s)
	if read || leaves || blocked(s.err) {
		quiesced := false
		if read && s.hooks.Phase == slipwayv1alpha1.HooksHeld {
			pods, err := r.podsWith(ctx, s, s.hooks.Claim)
			quiesced = err == nil && hook.AllHeld(s.hooks, pods)
		}
		hook.Release(s.hooks, read, quiesced, now)
	}
	switch {
	case leaves && hook.Pending(s.hooks):
		s.next = s.staying(
			slipwayv1alpha1.ReasonReleasing, "the attempt has ended; the after hook (spec.hooks.after of the Backup) runs", now,
		)
	case s.err == nil && s.hooks.Phase == slipwayv1alpha1.HooksAfter && s.snapshot.UID != "" && s.job.UID == "":
		s.next = s.staying(slipwayv1alpha1.ReasonReleasing,
			"no copy is made before the after hook (spec.hooks.after of the Backup) has run", now)
	case s.hooks.Phase == slipwayv1alpha1.HooksBefore:
		s.next = s.staying(slipwayv1alpha1.ReasonHookRunning, "the before hook (spec.hooks.before of the Backup) runs", now)
	}
}

// blocked reports whether nobody knows when the volume will be read: the workload is not held meanwhile. An error of the API
// server passes.
func blocked(err error) bool {
	worst := outcome.Worst(err)
	return worst != nil && worst.Kind != outcome.Transient
}

// staying is that the present attempt goes on.
func (s *scope) staying(reason, message string, now time.Time) mover.Next {
	next := mover.Next{
		Phase: slipwayv1alpha1.BackupRunning, Reason: reason, Message: message, Attempt: s.attempt(), Begins: s.runProgress().AttemptBegan,
		Recheck: max(0, s.runProgress().Deadline().Sub(now)),
	}
	if next.Begins.IsZero() {
		next.Begins = now
	}
	return next
}

// letGo runs the pending after hooks of a run that is being deleted. The Jobs end first: what they read is not held any more.
func (r *Reconciler) letGo(ctx context.Context, s *scope, now time.Time) error {
	r.runHooks(s, now)
	why, err := r.finalizer.Finish(ctx, s.run, now, &s.recheck, func(ctx context.Context) (bool, error) {
		var err error
		for i := range s.jobs {
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.run, &s.jobs[i]))
		}
		pending := hook.Pending(s.run.Status.Hooks) // what is stored is reported, with its event
		hook.Release(s.hooks, false, false, now)
		return !pending, err
	})
	if (why == finalizer.LetGo || why == finalizer.OutOfTime) && hook.Pending(s.hooks) {
		r.metrics.hooksLeft.Inc()
		r.kit.Warn(s.run, slipwayv1alpha1.ReasonHookLeft,
			"the run goes, and its after hook (spec.hooks.after of the Backup) has not run: the workload may still be held")
	}
	return err
}
