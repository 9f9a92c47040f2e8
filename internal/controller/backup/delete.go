package backup

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/finalizer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
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
	came := undecided
	why, err := r.finalizer.Finish(ctx, s.backup, now, &s.recheck, func(ctx context.Context) (bool, error) {
		var err error
		came, err = r.deleteRepository(ctx, s, now)
		if came == undecided {
			came, err = r.strand(ctx, s, err)
		}
		return came != undecided, err
	})
	switch {
	case err != nil:
	case why == finalizer.LetGo || why == finalizer.OutOfTime:
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryLeft, "the repository at spec.destination was not deleted: it stays there")
	case why == finalizer.Undone && came == left:
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryLeft,
			"nothing tells that this Backup made a repository at spec.destination: whatever is there stays there")
	case why == finalizer.Undone && came == stranded:
		// A namespace that is being deleted takes no event, so the log says it, too.
		logf.FromContext(ctx).Info("The repository was not deleted, because the namespace is being deleted: it stays where it is",
			"destination", s.backup.Spec.Destination, "repositoryID", s.knownRepositoryID())
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryLeft,
			"the repository at spec.destination was not deleted, because the namespace is being deleted: it stays there")
	case why == finalizer.Undone && came == missing:
		r.kit.Warn(s.backup, slipwayv1alpha1.ReasonRepositoryNotFound,
			"there was no repository at spec.destination to delete: if it was moved, it stays where it is now")
	}
	return err
}

// ending is what became of the repository of a Backup that is being deleted.
type ending int

const (
	// undecided: it is still to be deleted.
	undecided ending = iota
	// settled: it was deleted, or nobody has asked for that, or the Backup cannot have made one.
	settled
	// missing: there was none.
	missing
	// left: nothing tells that what is there is of this Backup, so it stays.
	left
	// stranded: it stays, because the namespace is being deleted, in which no Job can be made any more.
	stranded
)

// deleteRepository has a Job delete the repository, and tells what became of it.
func (r *Reconciler) deleteRepository(ctx context.Context, s *scope, now time.Time) (ending, error) {
	if s.backup.Spec.DeletionPolicy != slipwayv1alpha1.DeletionDelete {
		return settled, nil
	}
	if may, err := r.mayHaveRepository(ctx, s); !may || err != nil {
		return settled, err
	}
	// Of the spec only this has to be right: a schedule that is wrong keeps nothing from being deleted.
	var err error
	if s.place, err = mover.ParseDestination(s.backup.Spec.Destination); err != nil {
		return undecided, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination: %v", err)
	}
	if stopped, err := r.stop(ctx, s); !stopped || err != nil {
		return undecided, err
	}
	job, attempt := s.lastDelete()
	if job == nil {
		return r.makeDelete(ctx, s, 1)
	}
	seen, err := r.observe(ctx, s, job, now)
	switch {
	case err != nil:
		return undecided, err
	case seen.State == mover.Succeeded:
		return settled, r.forget(ctx, s)
	case seen.State != mover.Failed && seen.Trouble != nil:
		return undecided, outcome.Waitingf(0, seen.Trouble.Reason, "the repository is not deleted yet: %s", seen.Trouble.Message)
	case seen.State != mover.Failed:
		return undecided, nil
	case seen.Trouble.Reason == slipwayv1alpha1.ReasonRepositoryNotFound, seen.Trouble.Reason == slipwayv1alpha1.ReasonDestinationNotFound:
		return missing, r.forget(ctx, s)
	case seen.Trouble.Reason == slipwayv1alpha1.ReasonWrongRepository && s.knownRepositoryID() == "":
		return left, nil // it does not become another one
	}
	if wait := againAfter(attempt) - now.Sub(s.failedAt(job, now)); wait > 0 {
		return undecided, outcome.Blockedf(wait, slipwayv1alpha1.ReasonRepositoryLeft,
			"the repository could not be deleted, and that is tried again (%s: %s)", seen.Trouble.Reason, seen.Trouble.Message)
	}
	return r.makeDelete(ctx, s, attempt+1)
}

// strand gives up what failed in a namespace that is being deleted: no Secret comes back there, and no Job can be made. It asks by
// a Lease that is not made, because a Backup may wait for a Secret, and then there is no other answer of the API server that tells.
func (r *Reconciler) strand(ctx context.Context, s *scope, failed error) (ending, error) {
	worst := outcome.Worst(failed)
	if worst == nil {
		return undecided, failed
	}
	if worst.Reason == slipwayv1alpha1.ReasonNamespaceTerminating {
		return stranded, nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: string(s.backup.UID), Namespace: s.backup.Namespace}}
	err := r.kit.Client.Create(ctx, lease, client.FieldOwner(FieldManager), client.DryRunAll, unseen)
	if err != nil && outcome.Classify("a Lease", err).Reason == slipwayv1alpha1.ReasonNamespaceTerminating {
		return stranded, nil
	}
	return undecided, failed
}

// forget forgets the ID of a repository that is gone, where the Secret can be written: the Backup is not kept for it.
func (r *Reconciler) forget(ctx context.Context, s *scope) error {
	if err := r.unpin(ctx, s); !refusedWrite(err) {
		return err
	}
	return nil
}

// mayHaveRepository reports whether the Backup may have made a repository. A run that was killed may have made one and not have said
// so. One that never had a Job has made none. A stale cache may not show that a run has begun, so the API server is asked.
func (r *Reconciler) mayHaveRepository(ctx context.Context, s *scope) (bool, error) {
	if s.knownRepositoryID() != "" || s.backup.Status.LastBackupTime != nil {
		return true, nil
	}
	if job, _ := s.lastDelete(); job != nil {
		return true, nil // it was decided before
	}
	// Somebody may delete a Job before the status of its run tells of it.
	if taken, err := r.writers.Taken(ctx, s.backup); taken || err != nil {
		return taken, err
	}
	runs, jobs := &slipwayv1alpha1.BackupRunList{}, &batchv1.JobList{}
	if err := r.kit.Live.List(ctx, runs, client.InNamespace(s.backup.Namespace)); err != nil {
		return false, outcome.Classify("the BackupRuns of the namespace", err)
	}
	if err := r.kit.Live.List(ctx, jobs, client.InNamespace(s.backup.Namespace),
		client.HasLabels{slipwayv1alpha1.LabelBackupRun}); err != nil {
		return false, outcome.Classify("the Jobs of the namespace", err)
	}
	// Of a run that somebody has deleted nobody knows whether it had a Job.
	last := s.backup.Status.LastRun
	gone := last != nil
	for i := range runs.Items {
		run := &runs.Items[i]
		if !run.IsOf(s.backup) {
			continue
		}
		gone = gone && run.Name != last.Name
		if hadJob(run, jobs.Items) {
			return true, nil
		}
	}
	return gone, nil
}

// hadJob reports whether a run may have had a Job. One that has ended in the moment in which it began has only waited.
func hadJob(run *slipwayv1alpha1.BackupRun, jobs []batchv1.Job) bool {
	for i := range jobs {
		if metav1.IsControlledBy(&jobs[i], run) {
			return true
		}
	}
	s := run.Status
	onlyWaited := run.Ended() && s.StartTime.Equal(s.CompletionTime)
	return s.RepositoryID != "" || s.Attempt > 1 || (s.StartTime != nil && !onlyWaited)
}

// stop ends what works on the repository: it would go on writing to one that is being deleted. It reports whether all runs have
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

// stopRuns deletes the runs that have not ended, and reports whether there are none.
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

// makeDelete makes the Job of an attempt to delete the repository. The one before goes then, with its log. Where nobody knows
// which repository is that of the Backup, an older one is protected, and without its Secrets it is not looked for.
func (r *Reconciler) makeDelete(ctx context.Context, s *scope, attempt int) (ending, error) {
	known := s.knownRepositoryID()
	err := r.references.Check(ctx, s.backup.Namespace, s.drillSecrets())
	if known == "" && lacksSecret(err) {
		// What is left is never looked at again, and a stale cache may not show a Secret that was just made.
		if err = r.references.CheckLive(ctx, s.backup.Namespace, s.drillSecrets()); lacksSecret(err) {
			return left, nil
		}
	}
	if err != nil {
		return undecided, err
	}
	inputs := desired.Inputs{
		Backup: s.backup, Place: s.place, Image: r.image, Name: desired.DeleteName(s.backup, attempt),
		Steps: []mover.Step{mover.StepDelete}, Deadline: r.finalizer.Limit, RepositoryID: known,
	}
	if known == "" {
		inputs.MadeSince = s.backup.CreationTimestamp.Time
	}
	before, _ := s.lastDelete()
	if err := r.makeJob(ctx, s, &batchv1.Job{}, inputs); err != nil || before == nil {
		return undecided, err
	}
	return undecided, r.kit.Applier.Delete(ctx, s.backup, before)
}

// lacksSecret reports whether an error is about a Secret that there is not.
func lacksSecret(err error) bool {
	worst := outcome.Worst(err)
	return worst != nil && worst.Reason == slipwayv1alpha1.ReasonSecretNotFound
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

// failedAt is when a Job to delete the repository failed, by the operator's clock as far as that is known: the condition Stalled
// tells when it was first seen. The clock of the Job may be ahead, and nobody waits for that.
func (s *scope) failedAt(job *batchv1.Job, now time.Time) time.Time {
	at := now
	stalled := meta.FindStatusCondition(s.backup.Status.Conditions, slipwayv1alpha1.ConditionStalled)
	if stalled != nil && stalled.Reason == slipwayv1alpha1.ReasonRepositoryLeft && stalled.LastTransitionTime.Time.Before(at) {
		at = stalled.LastTransitionTime.Time
	}
	if end := endOf(job); end.Before(at) {
		return end
	}
	return at
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
