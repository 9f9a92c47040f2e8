package backup

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/transfer"
	"github.com/slipway-dev/slipway/internal/mover"
)

const (
	// deleteAgain is how long after the first Job that failed to delete a repository another one is made. Each further one comes
	// after twice the time, up to deleteAgainMax.
	deleteAgain    = 30 * time.Second
	deleteAgainMax = 10 * time.Minute
)

// hold keeps a Backup until its repository is deleted, where that is asked for, and lets it go where it is not any more.
func (r *Reconciler) hold(ctx context.Context, s *scope) error {
	if s.backup.Spec.DeletionPolicy == slipwayv1alpha1.DeletionDelete {
		return r.finalizer.Add(ctx, s.backup)
	}
	return r.finalizer.Remove(ctx, s.backup)
}

// finish deletes the repository of a Backup that is being deleted, where that is asked for.
func (r *Reconciler) finish(ctx context.Context, s *scope, now time.Time) error {
	missing := false
	why, err := r.finalizer.Finish(ctx, s.backup, now, &s.recheck, func(ctx context.Context) (bool, error) {
		var done bool
		var err error
		done, missing, err = r.deleteRepository(ctx, s, now)
		return done, err
	})
	switch {
	case err != nil:
	case why == finalizer.LetGo || why == finalizer.OutOfTime:
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryLeft, "the repository at spec.destination was not deleted: it stays there")
	case why == finalizer.Undone && missing:
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryNotFound,
			"there was no repository at spec.destination to delete: if it was moved, it stays where it is now")
	}
	return err
}

// deleteRepository has a Job delete the repository, and tells whether that is done. missing tells that there was none.
func (r *Reconciler) deleteRepository(ctx context.Context, s *scope, now time.Time) (done, missing bool, err error) {
	if s.backup.Spec.DeletionPolicy != slipwayv1alpha1.DeletionDelete || !s.mayHaveRepository() {
		return true, false, nil
	}
	// Of the spec only this has to be right: a schedule that is wrong keeps nothing from being deleted.
	if s.place, err = mover.ParseDestination(s.backup.Spec.Destination); err != nil {
		return false, false, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination: %v", err)
	}
	if stopped, err := r.stop(ctx, s); !stopped || err != nil {
		return false, false, err
	}
	job, attempt := s.lastDelete()
	if job == nil {
		return false, false, r.makeDelete(ctx, s, 1)
	}
	seen, err := transfer.Observe(ctx, r.kit.Live, job, s.pods, stepsOf(job))
	if err != nil {
		return false, false, err
	}
	switch {
	case seen.State == mover.Succeeded:
		return true, false, r.unpin(ctx, s)
	case seen.State == mover.Failed && seen.Trouble.Reason == slipwayv1alpha1.ReasonRepositoryNotFound:
		return true, true, r.unpin(ctx, s)
	case seen.State != mover.Failed:
		return false, false, nil
	}
	if left := againAfter(attempt) - now.Sub(endOf(job)); left > 0 {
		return false, false, outcome.Blockedf(min(left, deleteAgainMax), slipwayv1alpha1.ReasonRepositoryLeft,
			"the repository could not be deleted, and that is tried again (%s: %s)", seen.Trouble.Reason, seen.Trouble.Message)
	}
	return false, false, r.makeDelete(ctx, s, attempt+1)
}

// mayHaveRepository tells that there may be a repository. A run that was killed may have made one and not have said so.
func (s *scope) mayHaveRepository() bool {
	return s.knownRepositoryID() != "" || s.backup.Status.LastRun != nil || s.backup.Status.LastBackupTime != nil ||
		slices.ContainsFunc(s.runs, func(run slipwayv1alpha1.BackupRun) bool { return run.Status.StartTime != nil })
}

// stop ends what works on the repository: it would go on writing to one that is being deleted. It tells whether all runs have
// gone. A stale cache may not show one that has just begun, so the API server is asked before the Job is made.
func (r *Reconciler) stop(ctx context.Context, s *scope) (bool, error) {
	for i := range s.drills {
		if err := r.kit.Applier.Delete(ctx, s.backup, &s.drills[i]); err != nil {
			return false, err
		}
	}
	stopped, err := r.stopRuns(ctx, s, s.runs)
	if !stopped || err != nil {
		return false, err
	}
	if job, _ := s.lastDelete(); job != nil {
		return true, nil
	}
	live := &slipwayv1alpha1.BackupRunList{}
	if err := r.kit.Live.List(ctx, live, client.InNamespace(s.backup.Namespace)); err != nil {
		return false, outcome.Classify("the BackupRuns of the namespace", err)
	}
	return r.stopRuns(ctx, s, slices.DeleteFunc(live.Items, func(run slipwayv1alpha1.BackupRun) bool { return !run.IsOf(s.backup) }))
}

// stopRuns deletes the runs that have not ended, and tells whether there are none.
func (r *Reconciler) stopRuns(ctx context.Context, s *scope, runs []slipwayv1alpha1.BackupRun) (bool, error) {
	stopped := true
	var err error
	for i := range runs {
		if !runs[i].Ended() {
			stopped = false
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.backup, &runs[i]))
		}
	}
	return stopped, err
}

// makeDelete makes the Job of an attempt to delete the repository. The one before goes then, with its log.
func (r *Reconciler) makeDelete(ctx context.Context, s *scope, attempt int) error {
	if err := transfer.Secrets(ctx, r.kit.Client, s.backup.Namespace, s.drillSecrets()); err != nil {
		return err
	}
	before, _ := s.lastDelete()
	name := desired.DeleteName(s.backup, attempt)
	if err := r.makeJob(ctx, s, &batchv1.Job{}, name, []mover.Step{mover.StepDelete}, r.finalizer.Limit); err != nil || before == nil {
		return err
	}
	return r.kit.Applier.Delete(ctx, s.backup, before)
}

// lastDelete is the Job of the last attempt to delete the repository, and which one it is from 1. It is nil where there is none.
func (s *scope) lastDelete() (last *batchv1.Job, attempt int) {
	for i := range s.jobs {
		rest, found := strings.CutPrefix(s.jobs[i].Name, desired.DeleteName(s.backup, 1))
		n := 1
		if rest != "" {
			var err error
			if n, err = strconv.Atoi(strings.TrimPrefix(rest, "-")); err != nil {
				continue
			}
		}
		if found && n > attempt {
			last, attempt = &s.jobs[i], n
		}
	}
	return last, attempt
}

// againAfter is how long after a failed attempt another one is made.
func againAfter(attempt int) time.Duration {
	const doublings = 5 // more are more than the most
	return min(deleteAgainMax, deleteAgain<<min(attempt-1, doublings))
}

// endOf is when a Job failed.
func endOf(job *batchv1.Job) time.Time {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return job.CreationTimestamp.Time
}
