package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/restore/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// transfer makes the volume, where it is asked to, and the Job of the present attempt.
func (r *Reconciler) transfer(ctx context.Context, s *scope, now time.Time) error {
	if begins := s.restore.Status.AttemptTime; begins != nil && begins.After(now) {
		return outcome.Waitingf(begins.Sub(now), slipwayv1alpha1.ReasonRetrying, "another attempt begins soon")
	}
	if err := r.references.Check(ctx, s.restore.Namespace, s.origin.secrets()); err != nil {
		return err
	}
	if err := r.findPriorityClass(ctx, s); err != nil {
		return err
	}
	if s.origin.place.Claim == s.restore.Spec.Target.Claim {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid,
			"spec.target.claim: PersistentVolumeClaim %q holds the repository that would be restored from: name another one",
			s.origin.place.Claim)
	}
	if err := r.makeVolume(ctx, s); err != nil {
		return err
	}
	target := types.NamespacedName{Namespace: s.restore.Namespace, Name: s.restore.Spec.Target.Claim}
	use, err := transfer.Use(ctx, r.kit.Live, target, slipwayv1alpha1.ReasonTargetNotFound, "spec.target.claim", 0)
	if err != nil {
		return err
	}
	left := s.runProgress().Deadline().Sub(now)
	if left <= 0 {
		return nil // judge says so
	}
	job, err := desired.Job(desired.Inputs{
		Restore: s.restore, Place: s.origin.place, RepositoryID: s.origin.repositoryID,
		Encryption: s.origin.encryption, Credentials: s.origin.credentials, Snapshot: s.origin.snapshot, Volume: s.origin.volume,
		Image: r.image, Attempt: s.attempt(), Node: use.Node, Tolerations: use.Tolerations, Identity: use.Identity.As(s.restore.Spec.Mover),
		Deadline: left,
	})
	if err != nil {
		return err
	}
	// A pod of an earlier attempt, or of another Restore, may be on a node that does not answer, and still write.
	return r.writers.CreateAlone(ctx, lock.Target(target, use.Claim), s.restore, apply.Child{Desired: job, Current: s.job})
}

// findUnlabelled reads the Job of a Running Restore from the API server, when the cache does not show it: the cache has only Jobs
// with our labels, and somebody may have removed these. Without the Job the Restore would begin anew.
func (r *Reconciler) findUnlabelled(ctx context.Context, s *scope) error {
	if s.job.UID != "" || s.restore.Status.Phase != slipwayv1alpha1.BackupRunning {
		return nil
	}
	job := &batchv1.Job{}
	key := types.NamespacedName{Namespace: s.restore.Namespace, Name: desired.JobName(s.restore, s.attempt())}
	switch err := r.kit.Live.Get(ctx, key, job); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return outcome.Classify(fmt.Sprintf("Job %q", key.Name), err)
	case r.kit.Applier.Ours(s.restore, job):
		s.jobs = append(s.jobs, *job)
		s.job = job
	}
	return nil
}

// tidy deletes the Jobs whose results stand in the status. The last one of a restore that failed stays with its log, as long
// as the Restore does.
func (r *Reconciler) tidy(ctx context.Context, s *scope) error {
	var err error
	for i := range s.jobs {
		if job := &s.jobs[i]; !s.keeps(job) {
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.restore, job))
		}
	}
	return err
}

// keeps tells which Jobs stay, going by the status that is stored.
func (s *scope) keeps(job *batchv1.Job) bool {
	switch {
	case s.restore.Status.Phase == slipwayv1alpha1.BackupCompleted, job.Name != desired.JobName(s.restore, s.attempt()):
		return false
	case s.restore.Status.Phase == slipwayv1alpha1.BackupFailed:
		// One that still runs, or waits for its pod, must not do so for ever.
		return mover.Observe(job, s.pods, desired.Steps).State == mover.Failed
	default:
		return true
	}
}
