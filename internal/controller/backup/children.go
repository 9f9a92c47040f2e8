package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// defaultHistory is how many runs that have ended are kept where the spec says nothing.
const defaultHistory = 10

// check reads what the schema cannot check, and plans.
func (s *scope) check(now time.Time) error {
	s.plan, s.promise = promised(s.backup, now, s.lastBackup())
	s.recheck.After(s.plan.late.Sub(now)) // the zero time is long ago: it asks for nothing
	if wrong := problems(&s.backup.Spec); len(wrong) > 0 {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.%s: %s", wrong[0].field, wrong[0].message)
	}
	var err error
	if s.place, err = mover.ParseDestination(s.backup.Spec.Destination); err != nil {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination: %v", err)
	}
	plan, err := planned(s.backup, now, s.lastBackup())
	if err != nil {
		return err
	}
	s.plan = plan
	s.recheck.After(s.plan.next.Sub(now))
	return nil
}

// start makes the run that is due, once the one before it has ended. Its name comes from the slot, so there is one run for a
// slot whoever makes it.
func (r *Reconciler) start(ctx context.Context, s *scope) error {
	if s.backup.Spec.Hooks != nil && !r.hooks {
		return outcome.Invalidf(slipwayv1alpha1.ReasonHooksDisabled,
			"spec.hooks: this operator runs no commands in pods, so there are no runs; whoever installs it can let it, with --backup-hooks")
	}
	if s.plan.slot.IsZero() {
		s.see()
		return nil
	}
	if s.open() != nil || s.working() {
		return nil // the end of it is an event
	}
	if s.repositoryID != "" {
		// Somebody may have taken it away, and an older release kept it under another key. Where that cannot be written there
		// is a run all the same: the status has the ID, too.
		if err := r.pin(ctx, s, s.repositoryID); err != nil && !refusedWrite(err) {
			return err
		}
	}
	run := &slipwayv1alpha1.BackupRun{}
	name := schedule.RunName(s.backup.Name, s.plan.slot)
	if _, err := r.kit.Get(ctx, types.NamespacedName{Namespace: s.backup.Namespace, Name: name}, run); err != nil {
		return err
	}
	if _, err := r.kit.Applier.CreateOnly(ctx, s.backup,
		apply.Child{Desired: desired.Run(s.backup, s.plan.slot), Current: run}); err != nil {
		return err
	}
	s.started = name
	s.see()
	return nil
}

// see notes the slots that were seen to.
func (s *scope) see() {
	if s.plan.handled.IsZero() || (s.lastSlot != nil && !s.plan.handled.After(s.lastSlot.Time)) ||
		(s.lastSlot == nil && s.plan.slot.IsZero() && s.plan.missed == 0) {
		return
	}
	handled := metav1.NewTime(s.plan.handled)
	s.lastSlot = &handled
	s.missed += s.plan.missed
}

// observe says what a Job of the Backup itself has come to.
func (r *Reconciler) observe(ctx context.Context, s *scope, job *batchv1.Job, now time.Time) (mover.Observation, error) {
	look, err := r.moves.Look(ctx, job, s.pods, stepsOf(job), mover.Names{
		Place: s.place, Destination: "spec.destination",
		Credentials: mover.Named{Name: s.backup.CredentialsSecret(), Field: "spec.credentials"},
		Encryption:  mover.Named{Name: s.backup.EncryptionSecret(), Field: "spec.encryption"},
	}, now)
	s.recheck.After(look.Again)
	return look.Observation, err
}

// working reports whether a Job of the Backup itself is under way.
func (s *scope) working() bool {
	for i := range s.jobs {
		if state := mover.Observe(&s.jobs[i], s.pods, stepsOf(&s.jobs[i])).State; state == mover.Starting || state == mover.Working {
			return true
		}
	}
	return false
}

// tidy deletes runs that are history, and Jobs whose results stand in the status.
func (r *Reconciler) tidy(ctx context.Context, s *scope) error {
	var err error
	for _, run := range history(s.runs, int(limitOf(s.backup))) {
		err = errors.Join(err, r.kit.Applier.Delete(ctx, s.backup, run))
	}
	for i := range s.jobs {
		obsolete, failed := s.obsolete(&s.jobs[i]), error(nil)
		if !obsolete {
			obsolete, failed = r.orphaned(ctx, s, &s.jobs[i])
		}
		err = errors.Join(err, failed)
		if obsolete {
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.backup, &s.jobs[i]))
		}
	}
	err = errors.Join(err, r.tidyDrills(ctx, s))
	if err != nil {
		return fmt.Errorf("delete what is history: %w", err)
	}
	return nil
}

func limitOf(backup *slipwayv1alpha1.Backup) int32 {
	if backup.Spec.HistoryLimit != nil {
		return *backup.Spec.HistoryLimit
	}
	return defaultHistory
}

// history are the runs that are not kept: those that have ended beyond the limit, but for the newest that completed.
func history(newestFirst []slipwayv1alpha1.BackupRun, limit int) []*slipwayv1alpha1.BackupRun {
	var old []*slipwayv1alpha1.BackupRun
	ended, completed := 0, false
	for i := range newestFirst {
		run := &newestFirst[i]
		if !run.Ended() {
			continue
		}
		ended++
		newest := !completed && run.Status.Phase == slipwayv1alpha1.BackupCompleted
		completed = completed || newest
		if ended > limit && !newest {
			old = append(old, run)
		}
	}
	return old
}
