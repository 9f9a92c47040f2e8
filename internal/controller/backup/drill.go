package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/text"
)

// A drill is made for a pod that needs to know how large the volumes of the source are, and as which user their pods run.
//
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list

// runDrill restores the newest verified copy and has it compared with the source, when that is due.
//
// Two steps keep it apart from itself: a drill stands in the status before it has a Job, so that whoever makes the Job makes
// it of the same run; and the name of the Job comes from the slot, so that there is one, whoever makes it.
func (r *Reconciler) runDrill(ctx context.Context, s *scope, now time.Time) error {
	if s.backup.Drill() == nil {
		return nil
	}
	planned, err := plannedDrill(s.backup, now)
	if err != nil {
		return err
	}
	s.drill.NextTime = nil
	if !planned.next.IsZero() {
		s.drill.NextTime = &metav1.Time{Time: planned.next}
		s.recheck.After(planned.next.Sub(now))
	}
	if !s.drill.UnderWay() {
		s.beginDrill(planned, now)
		return nil
	}
	run := s.runNamed(s.drill.Run)
	job := s.drillJob()
	next, err := r.followDrill(ctx, s, run, job, now)
	if err != nil {
		return err
	}
	s.applyDrill(next, now)
	s.recheck.After(next.Recheck)
	return nil
}

// drillWaits reports whether a drill has to wait for what works on the repository. A drill only reads, and needs no lock: a run
// may begin beside it. But it begins with the newest copy, so it waits for a run that is about to make a newer one. And what
// removes old copies must not take away what a drill reads: each waits for the other's Job, and the removal comes first.
func (s *scope) drillWaits() bool {
	return s.open() != nil || s.started != "" || s.working() || s.keeping
}

// drillWorks reports whether a drill reads the repository now.
func (s *scope) drillWorks() bool {
	for i := range s.drills {
		steps := stepsOf(&s.drills[i])
		if state := mover.Observe(&s.drills[i], s.pods, steps).State; state == mover.Starting || state == mover.Working {
			return true
		}
	}
	return false
}

// beginDrill notes which drill is made next, of which run. It gets its Job when that is stored.
func (s *scope) beginDrill(planned drillPlan, now time.Time) {
	seen := func() {
		s.drill.LastSlot = nil
		if !planned.handled.IsZero() {
			s.drill.LastSlot = &metav1.Time{Time: planned.handled}
		}
		if planned.request != "" {
			s.drill.LastRequest = planned.request
		}
	}
	run := s.newestCopy()
	switch {
	case planned.name == "":
		seen()
		return
	case s.drillWaits():
		return // the end of it is an event
	case run != nil && s.backup.Status.RepositoryID == "":
		return // the status says it first
	case run == nil && planned.request == "" && s.plan.met(s.lastBackup()):
		seen() // the first copy is still to come
		return
	}
	seen()
	before := s.drill
	s.drill = &slipwayv1alpha1.BackupDrillStatus{
		Phase: slipwayv1alpha1.BackupPending, Reason: slipwayv1alpha1.ReasonTransferring, Message: "the drill begins",
		LastTime: before.LastTime, LastSuccessTime: before.LastSuccessTime, NextTime: before.NextTime,
		Name: planned.name, Attempt: 1, Jobs: before.Jobs + 1, StartTime: transfer.At(now), AttemptTime: transfer.At(now),
		LastSlot: before.LastSlot, LastRequest: before.LastRequest,
	}
	if run == nil {
		s.applyDrill(
			s.drillProgress().Fail(slipwayv1alpha1.ReasonNoCopy, "there is no BackupRun with a verified copy to restore", now), now,
		)
		return
	}
	s.drill.Run = run.Name
	if len(run.Status.Volumes) > 0 {
		s.drill.SnapshotID = run.Status.Volumes[0].SnapshotID
	}
}

// drillProgress is how the drill has gone so far.
func (s *scope) drillProgress() mover.RunProgress {
	progress := mover.RunProgress{
		Phase: s.drill.Phase, Reason: s.drill.Reason, Message: s.drill.Message, Attempt: max(1, s.drill.Attempt),
	}
	if s.drill.StartTime != nil {
		progress.Began, progress.Created = s.drill.StartTime.Time, s.drill.StartTime.Time
	}
	if s.drill.ReasonTime != nil {
		progress.ReasonSince = s.drill.ReasonTime.Time
	}
	if s.drill.AttemptTime != nil {
		progress.AttemptBegan = s.drill.AttemptTime.Time
	}
	if allowed, err := time.ParseDuration(string(s.backup.Drill().Deadline)); err == nil {
		progress.Allowed = allowed
	}
	return progress
}

// followDrill makes the Job of the present attempt, unless it is there, and says what follows from what it has come to.
func (r *Reconciler) followDrill(
	ctx context.Context, s *scope, run *slipwayv1alpha1.BackupRun, job *batchv1.Job, now time.Time,
) (mover.Next, error) {
	progress := s.drillProgress()
	wait := func(reason, message string) (mover.Next, error) {
		return progress.Wait(&health.Trouble{Reason: reason, Message: message}, now), nil
	}
	if job.UID == "" {
		switch begins := progress.AttemptBegan; {
		case !now.Before(progress.Deadline()):
			return progress.Fail(slipwayv1alpha1.ReasonDeadlineExceeded, "it was not done within spec.verify.drill.deadline", now), nil
		case begins.After(now):
			next, err := wait(slipwayv1alpha1.ReasonRetrying, "")
			next.Recheck = begins.Sub(now)
			return next, err
		case run == nil:
			return progress.Fail(slipwayv1alpha1.ReasonRunNotFound,
				fmt.Sprintf("there is no BackupRun %q any more, which the drill is about", s.drill.Run), now), nil
		case s.drillWaits():
			return wait(slipwayv1alpha1.ReasonQueued, "a run or the removal of old copies is under way")
		}
		err := r.makeDrill(ctx, s, run, job, progress.Deadline().Sub(now))
		if worst := outcome.Worst(err); worst != nil && worst.Kind == outcome.Waiting {
			return progress.Wait(worst.Trouble(), now), nil
		}
		if err != nil {
			return mover.Next{}, err
		}
	}
	seen, err := r.observe(ctx, s, job, now)
	if err != nil {
		return mover.Next{}, err
	}
	next, decided := progress.Follow(seen, map[mover.Step]string{
		mover.StepRestore: "the newest verified copy is being restored",
		mover.StepCompare: "what was restored is being compared with the source",
		mover.StepCommand: "the command of the drill runs",
	}, now)
	if decided {
		if next.Reason == slipwayv1alpha1.ReasonTransferring && seen.Step != mover.StepRestore {
			next.Reason = slipwayv1alpha1.ReasonVerifying
		}
		return next, nil
	}
	return s.acceptDrill(progress, seen, run, now), nil
}

// acceptDrill takes what the steps say, and refuses what proves nothing.
func (s *scope) acceptDrill(progress mover.RunProgress, seen mover.Observation, run *slipwayv1alpha1.BackupRun, now time.Time) mover.Next {
	restored, compared := seen.Results[mover.StepRestore], seen.Results[mover.StepCompare]
	refuse := func(reason, message string) mover.Next {
		return progress.FailAttempt(&health.Trouble{Reason: reason, Message: message}, now)
	}
	switch {
	case restored == nil || restored.Drill == nil || compared == nil || compared.Drill == nil:
		return refuse(slipwayv1alpha1.ReasonMoverFailed, "a step did not say what it did")
	case restored.RepositoryID == "" || restored.RepositoryID != compared.RepositoryID,
		s.repositoryID != "" && restored.RepositoryID != s.repositoryID:
		return refuse(slipwayv1alpha1.ReasonWrongRepository, "the copy was restored from another repository than it was compared with")
	case restored.Drill.Volumes == 0 || restored.Drill.Volumes != compared.Drill.Volumes,
		run != nil && restored.Drill.Volumes != len(run.Status.Volumes):
		return refuse(slipwayv1alpha1.ReasonMoverFailed, "other volumes were compared than were restored")
	case compared.Drill.Files == 0 && (restored.Drill.Files > 0 || (compared.Drill.Entries == 0 && !s.backup.Spec.AllowEmpty)):
		return refuse(slipwayv1alpha1.ReasonNothingCompared, "no file was compared, so nothing is proved")
	}
	s.drill.ComparedFiles, s.drill.ComparedBytes = compared.Drill.Files, compared.Drill.Bytes
	message := fmt.Sprintf("BackupRun %q was restored, and is as the source was: %d of %d files were compared", s.drill.Run,
		compared.Drill.Files, restored.Drill.Files)
	if compared.Drill.Changed > 0 {
		message += fmt.Sprintf(", %d had changed while they were read", compared.Drill.Changed)
	}
	return mover.Next{
		Phase: slipwayv1alpha1.BackupCompleted, Reason: slipwayv1alpha1.ReasonDrillPassed, Message: message, Attempt: progress.Attempt,
		Begins: progress.AttemptBegan,
	}
}

// applyDrill notes what follows.
func (s *scope) applyDrill(next mover.Next, now time.Time) {
	d := s.drill
	if next.Attempt != d.Attempt {
		d.Jobs++
	}
	d.ReasonTime = transfer.ReasonTime(d.Reason, next.Reason, d.ReasonTime, now)
	d.Phase, d.Reason, d.Message = next.Phase, next.Reason, text.Cut(next.Message, transfer.MaxMessage)
	d.Attempt, d.AttemptTime = next.Attempt, transfer.At(next.Begins)
	if next.Ended() {
		d.LastTime = transfer.At(now)
	}
	if next.Phase == slipwayv1alpha1.BackupCompleted {
		d.LastSuccessTime = d.LastTime
	}
}

// makeDrill makes the Job of an attempt.
func (r *Reconciler) makeDrill(ctx context.Context, s *scope, run *slipwayv1alpha1.BackupRun, job *batchv1.Job, left time.Duration) error {
	if err := r.references.Check(ctx, s.backup.Namespace, s.drillSecrets()); err != nil {
		return err
	}
	claims, err := r.claimsOf(ctx, run)
	if err != nil {
		return err
	}
	pods, err := transfer.Pods(ctx, r.kit.Live, s.backup.Namespace, transfer.Mount(slices.Collect(maps.Keys(claims))...))
	if err != nil {
		return outcome.Classify("the pods that use the volumes", err)
	}
	built, err := desired.DrillJob(desired.DrillInputs{
		Backup: s.backup, Place: s.place, Image: r.image, Drill: s.drill.Name, Attempt: s.drill.Attempt, Number: s.drill.Jobs,
		Run: run, NotBefore: s.drillNotBefore(), Claims: claims, Identity: identityOf(run, claims, pods).As(s.backup.Spec.Mover),
		Deadline: left,
	})
	if err != nil {
		return err
	}
	_, err = r.kit.Applier.CreateOnly(ctx, s.backup, apply.Child{Desired: built, Current: job})
	return err
}

// drillSecrets are the Secrets that the pod mounts.
func (s *scope) drillSecrets() []transfer.Reference {
	var list []transfer.Reference
	if s.place.Bucket != "" {
		list = append(list, transfer.Credentials(s.backup.CredentialsSecret(), "spec.credentials"))
	}
	return append(list, transfer.Encryption(s.backup.EncryptionSecret(), "spec.encryption"))
}

// drillNotBefore is how new a copy has to be: as new as status says, and as the schedule promises.
func (s *scope) drillNotBefore() time.Time {
	at := s.lastBackup()
	if !s.backup.Spec.Suspend && s.plan.expected.After(at) {
		at = s.plan.expected
	}
	return at
}

// runNamed is a run, or nil.
func (s *scope) runNamed(name string) *slipwayv1alpha1.BackupRun {
	i := slices.IndexFunc(s.runs, func(run slipwayv1alpha1.BackupRun) bool { return run.Name == name })
	if i < 0 {
		return nil
	}
	return &s.runs[i]
}

// drillJob is the Job of the present attempt, with no UID where there is none.
func (s *scope) drillJob() *batchv1.Job {
	name := desired.DrillJobName(s.drill.Name, s.drill.Attempt)
	for i := range s.drills {
		if s.drills[i].Name == name {
			return &s.drills[i]
		}
	}
	return &batchv1.Job{}
}

// tidyDrills deletes the Jobs of drills whose results stand in the status.
func (r *Reconciler) tidyDrills(ctx context.Context, s *scope) error {
	var err error
	for i := range s.drills {
		if !s.keepsDrill(&s.drills[i]) {
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.backup, &s.drills[i]))
		}
	}
	return err
}

// keepsDrill tells which Jobs of drills stay, going by the status that is stored. The last one of a drill that failed stays
// with its log until the next drill. The numbers of Jobs tell a stale cache from an old Job.
func (s *scope) keepsDrill(job *batchv1.Job) bool {
	if s.backup.Drill() == nil {
		return false
	}
	stored := s.backup.Status.Drill
	number, err := strconv.ParseInt(job.Labels[slipwayv1alpha1.LabelDrill], 10, 64)
	switch {
	case err != nil:
		return false
	case stored == nil || number > stored.Jobs:
		return true // the status that knows of it is still to come
	case number < stored.Jobs:
		return false
	case stored.UnderWay():
		return true
	case stored.Phase != slipwayv1alpha1.BackupFailed:
		return false
	default:
		// One that still runs, or waits for its pod, must not do so for ever.
		return mover.Observe(job, s.pods, stepsOf(job)).State == mover.Failed
	}
}

// drillFails reports whether the newest drill that has ended failed.
func (s *scope) drillFails() bool {
	return meta.IsStatusConditionFalse(s.drillPassed(), slipwayv1alpha1.ConditionDrillPassed)
}

// goesOn reports whether a drill that is under way for this reason needs nobody.
func goesOn(reason string) bool {
	switch reason {
	case slipwayv1alpha1.ReasonTransferring, slipwayv1alpha1.ReasonVerifying, slipwayv1alpha1.ReasonQueued, slipwayv1alpha1.ReasonRetrying:
		return true
	default:
		return false
	}
}

// drillPassed says how the newest drill went that has ended.
func (s *scope) drillPassed() []metav1.Condition {
	if s.backup.Drill() == nil || s.drill == nil {
		return nil
	}
	c := metav1.Condition{
		Type: slipwayv1alpha1.ConditionDrillPassed, Status: metav1.ConditionUnknown, Reason: slipwayv1alpha1.ReasonNoDrill,
		Message: "no drill has ended yet",
	}
	switch d := s.drill; {
	case d.LastTime == nil && d.UnderWay() && d.Reason != "" && !goesOn(d.Reason):
		c.Reason, c.Message = d.Reason, "no drill has ended yet, and this one does not begin: "+d.Message
	case d.LastTime == nil:
	case d.UnderWay():
		// What the one before came to stays true until this one has ended.
		for _, before := range s.backup.Status.Conditions {
			if before.Type == c.Type {
				c.Status, c.Reason, c.Message = before.Status, before.Reason, before.Message
			}
		}
	case d.Phase == slipwayv1alpha1.BackupFailed:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, d.Reason, d.Message
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed, d.Message
	}
	return []metav1.Condition{c}
}
