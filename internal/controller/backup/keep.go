package backup

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

const (
	// maintainEvery is how often unused space is freed. Less than a day, so that a daily backup does it each time.
	maintainEvery = 20 * time.Hour
	// maintainAtLast is after how long unused space is freed though a run may have to wait for that.
	maintainAtLast = 72 * time.Hour
	// maintainTakes is how long freeing unused space may take, at the least.
	maintainTakes = 10 * time.Minute
	// keepDeadline is how long removing old copies may take.
	keepDeadline = 2 * time.Hour
)

// currentKeep is the name of the Job that removes old copies after the newest completed run, or empty.
func (s *scope) currentKeep() string {
	run := s.newest(slipwayv1alpha1.BackupCompleted)
	if run == nil {
		return ""
	}
	return desired.KeepName(s.backup, run.Name)
}

// hasKept reports whether what is to be removed after the newest completed run is, going by the status that is stored.
func (s *scope) hasKept() bool {
	return s.covers(s.backup.Status.Retention, s.newest(slipwayv1alpha1.BackupCompleted))
}

// covers reports whether a retention was done by the present rules, after this run or a later one. A stale cache may not have the
// later one yet: retention does not go back for it.
func (s *scope) covers(kept *slipwayv1alpha1.BackupRetentionStatus, run *slipwayv1alpha1.BackupRun) bool {
	if run == nil || kept == nil || kept.Rules != desired.Rules(s.backup) {
		return false
	}
	if kept.Run == run.Name || kept.RunTime == nil {
		return kept.Run == run.Name
	}
	return newestFirst(kept.RunTime.Time, kept.Run, run.CreationTimestamp.Time, run.Name) < 0
}

// obsolete reports whether nobody waits any more for what a Job of retention does: its result stands in the status that is stored,
// the rules have changed, or a newer run than its own has completed. A Job whose run is not in a stale cache yet is not
// obsolete: its work would be done twice. Only times of the API server are compared: the operator's clock may jump.
func (s *scope) obsolete(job *batchv1.Job) bool {
	if job.Labels[slipwayv1alpha1.LabelRetentionRules] != desired.Rules(s.backup) {
		return true
	}
	if job.Name == s.currentKeep() {
		return s.hasKept()
	}
	kept := s.backup.Status.Retention
	if kept != nil && job.Name == desired.KeepName(s.backup, kept.Run) {
		return true
	}
	newest := s.newest(slipwayv1alpha1.BackupCompleted)
	if newest == nil {
		return false
	}
	ofOlder := slices.ContainsFunc(s.runs, func(run slipwayv1alpha1.BackupRun) bool {
		return compareRuns(*newest, run) < 0 && job.Name == desired.KeepName(s.backup, run.Name)
	})
	return ofOlder || job.CreationTimestamp.Before(&newest.CreationTimestamp)
}

// orphaned reports whether a Job of retention has ended whose run somebody has deleted: no status will speak of it. A stale cache may
// not have the run yet, so the API server is asked, once: then the Job goes.
func (r *Reconciler) orphaned(ctx context.Context, s *scope, job *batchv1.Job) (bool, error) {
	isOf := func(run slipwayv1alpha1.BackupRun) bool {
		return run.IsOf(s.backup) && job.Name == desired.KeepName(s.backup, run.Name)
	}
	ended := mover.Observe(job, s.pods, stepsOf(job)).State
	if !desired.IsKeep(s.backup, job.Name) || (ended != mover.Succeeded && ended != mover.Failed) || slices.ContainsFunc(s.runs, isOf) {
		return false, nil
	}
	runs := &slipwayv1alpha1.BackupRunList{}
	if err := r.kit.Live.List(ctx, runs, client.InNamespace(s.backup.Namespace)); err != nil {
		return false, outcome.Classify("the BackupRuns of the namespace", err)
	}
	return !slices.ContainsFunc(runs.Items, isOf), nil
}

// keep has old copies removed after each run that completed, and unused space freed about once a day.
func (r *Reconciler) keep(ctx context.Context, s *scope, now time.Time) error {
	run := s.newest(slipwayv1alpha1.BackupCompleted)
	if run == nil || s.hasKept() || s.repositoryID == "" {
		return nil
	}
	if s.backup.Status.RepositoryID == "" {
		return nil // the status says it first: then no Job can make another repository
	}
	kept := &slipwayv1alpha1.BackupRetentionStatus{Run: run.Name, RunTime: &run.CreationTimestamp, Rules: desired.Rules(s.backup)}
	if before := s.backup.Status.Retention; before != nil {
		kept.MaintenanceTime, kept.MaintenanceSeconds = before.MaintenanceTime, before.MaintenanceSeconds
	}
	job := &batchv1.Job{}
	name := s.currentKeep()
	for i := range s.jobs {
		if s.jobs[i].Name == name {
			job = &s.jobs[i]
		}
	}
	if job.UID != "" {
		// Whatever would be done now: what it does is not done twice. A run may wait for it, and must not hide its result.
		s.keeping = true
		return r.readKept(ctx, s, job, kept, now)
	}
	if s.started != "" || s.open() != nil {
		return nil // after the next run
	}
	steps := desired.KeepSteps(s.backup, s.maintenanceDue(now) && s.maintenanceFits(now))
	if before := s.backup.Status.Retention; before != nil && before.Reason == slipwayv1alpha1.ReasonRetentionFailed {
		// What keeps unused space from being freed may be a copy that needs lost data: it has to be able to expire.
		slices.Reverse(steps)
	}
	if len(steps) == 0 {
		s.kept = kept
		if before := s.backup.Status.Retention; before != nil && before.Reason == slipwayv1alpha1.ReasonRetentionFailed &&
			s.maintenanceDue(now) {
			kept.Reason, kept.Message = before.Reason, before.Message // what failed is not done yet
		}
		return nil
	}
	s.keeping = true
	if s.working() || s.drillWorks() {
		return nil // one at a time; the end of it is an event
	}
	return s.unlessBusy(r.makeJob(ctx, s, job, desired.Inputs{
		Backup: s.backup, Place: s.place, Image: r.image, Name: name, Steps: steps, Deadline: keepDeadline, RepositoryID: s.repositoryID,
	}))
}

// unlessBusy notes that another Job still writes to the repository. The Backup is no less ready for that.
func (s *scope) unlessBusy(err error) error {
	worst := outcome.Worst(err)
	if worst == nil || worst.Reason != slipwayv1alpha1.ReasonRepositoryBusy {
		return err
	}
	s.busy = worst.Message
	s.recheck.After(worst.After)
	return nil
}

// maintenanceDue reports whether unused space is to be freed.
func (s *scope) maintenanceDue(now time.Time) bool {
	kept := s.backup.Status.Retention
	return kept == nil || kept.MaintenanceTime == nil || now.Sub(kept.MaintenanceTime.Time) >= maintainEvery
}

// maintenanceFits reports whether freeing unused space can be expected to end before the next run is due. What has not been done
// for days is done anyway: where runs follow each other closely there is never time.
func (s *scope) maintenanceFits(now time.Time) bool {
	last, takes := s.backup.CreationTimestamp.Time, maintainTakes
	if kept := s.backup.Status.Retention; kept != nil && kept.MaintenanceTime != nil {
		last, takes = kept.MaintenanceTime.Time, max(takes, 2*time.Duration(kept.MaintenanceSeconds)*time.Second)
	}
	return s.plan.next.IsZero() || now.Sub(last) >= maintainAtLast || !now.Add(takes).After(s.plan.next)
}

// makeJob makes a Job that works on the repository.
func (r *Reconciler) makeJob(ctx context.Context, s *scope, job *batchv1.Job, inputs desired.Inputs) error {
	built, err := desired.Job(inputs)
	if err != nil {
		return err
	}
	return r.writers.Create(ctx, s.backup, s.backup, apply.Child{Desired: built, Current: job})
}

// readKept reads what came of the Job.
func (r *Reconciler) readKept(
	ctx context.Context, s *scope, job *batchv1.Job, kept *slipwayv1alpha1.BackupRetentionStatus, now time.Time,
) error {
	seen, err := r.observe(ctx, s, job, now)
	if err != nil {
		return err
	}
	if result := seen.Results[mover.StepMaintain]; result != nil && result.OK && result.Maintain != nil {
		at := metav1.NewTime(now.Truncate(time.Second))
		kept.MaintenanceTime, kept.MaintenanceSeconds = &at, int64(seen.Took[mover.StepMaintain]/time.Second)
		s.size = &result.Maintain.BytesAfter
	}
	if result := seen.Results[mover.StepExpire]; result != nil && result.OK && result.Expire != nil {
		kept.Removed = result.Expire.Removed
		s.snapshots = &result.Expire.Kept
	}
	late, left := seen.Late(now)
	if late != nil {
		seen.State, seen.Trouble = mover.Failed, late // it would keep every run from the repository
	}
	switch seen.State {
	case mover.Succeeded:
	case mover.Failed:
		kept.Reason, kept.Message = slipwayv1alpha1.ReasonRetentionFailed, seen.Trouble.Reason+": "+seen.Trouble.Message
		switch seen.Trouble.Reason {
		case slipwayv1alpha1.ReasonMassDeletion:
			kept.Reason, kept.Message = seen.Trouble.Reason, seen.Trouble.Message+
				"; to let them go, annotate the Backup with "+slipwayv1alpha1.AnnotationMayExpire+" and that number"
		case slipwayv1alpha1.ReasonCorrupt:
			kept.Message += "; unused space is not freed as long as a copy needs what is lost"
		}
	default:
		s.stuck = seen.Trouble
		s.recheck.After(left)
		return nil
	}
	s.kept, s.keeping = kept, false
	return nil
}

// stepsOf are the steps of a Job, in order.
func stepsOf(job *batchv1.Job) []mover.Step {
	var steps []mover.Step
	for i := range job.Spec.Template.Spec.InitContainers {
		steps = append(steps, mover.Step(job.Spec.Template.Spec.InitContainers[i].Name))
	}
	for i := range job.Spec.Template.Spec.Containers {
		steps = append(steps, mover.Step(job.Spec.Template.Spec.Containers[i].Name))
	}
	return steps
}
