package restore

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/restore/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields; status is computed from it at the end.
type scope struct {
	// restore is the Restore as the cache has it. Its status is replaced at the end.
	restore *slipwayv1alpha1.Restore
	// backup and run are what it names, with no UID where there is none. Set by load.
	backup *slipwayv1alpha1.Backup
	run    *slipwayv1alpha1.BackupRun
	// jobs are the Jobs of the Restore, job the one of the present attempt, and pods theirs. Set by load. findUnlabelled may add
	// to jobs and set job, and transfer sets job.
	jobs []batchv1.Job
	job  *batchv1.Job
	pods []corev1.Pod

	// pullSecrets is what was found of the Secrets that the image is pulled with. Set by load.
	pullSecrets pullsecret.Looked

	// origin is where the copy is. Set by find.
	origin origin

	// seen is what the Job has come to. Set by judge.
	seen mover.Observation
	// progress is how far it is. Set by listen.
	progress *slipwayv1alpha1.TransferProgress
	// next is what follows. Set by judge.
	next mover.Next

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the Restore and everything that belongs to it from the cache. It returns nil when the Restore is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{
		restore: &slipwayv1alpha1.Restore{}, backup: &slipwayv1alpha1.Backup{}, run: &slipwayv1alpha1.BackupRun{}, job: &batchv1.Job{},
	}
	if found, err := r.kit.Get(ctx, key, s.restore); !found || err != nil {
		return nil, err
	}
	name := types.NamespacedName{Namespace: key.Namespace}
	if ref := s.restore.Spec.Run; ref != nil {
		name.Name = ref.Name
		if _, err := r.kit.Get(ctx, name, s.run); err != nil {
			return nil, err
		}
	}
	if name.Name = s.backupName(); name.Name != "" {
		if _, err := r.kit.Get(ctx, name, s.backup); err != nil {
			return nil, err
		}
	}
	jobs := &batchv1.JobList{}
	err := r.kit.Client.List(ctx, jobs, watch.OwnedBy(s.restore, indexRestore))
	if err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	for i := range jobs.Items {
		if metav1.IsControlledBy(&jobs.Items[i], s.restore) {
			s.jobs = append(s.jobs, jobs.Items[i])
		}
	}
	for i := range s.jobs {
		if s.jobs[i].Name == desired.JobName(s.restore, s.attempt()) {
			s.job = &s.jobs[i]
		}
	}
	if mover := s.restore.Spec.Mover; mover != nil {
		const field = "spec.mover.imagePullSecrets"
		if s.pullSecrets, err = pullsecret.Look(ctx, r.kit.Client, key.Namespace, mover.ImagePullSecrets, field, ""); err != nil {
			return nil, err
		}
	}
	s.pods, err = watch.Pods(ctx, r.kit.Client, s.restore, indexRestore)
	return s, err
}

// backupName is the Backup whose repository has the copy, or empty.
func (s *scope) backupName() string {
	switch {
	case s.restore.Spec.Backup != nil:
		return s.restore.Spec.Backup.Name
	default:
		return s.run.Spec.Backup
	}
}

// attempt is which attempt is the present one, from 1.
func (s *scope) attempt() int32 { return max(1, s.restore.Status.Attempt) }

// children are what the status speaks of.
func (s *scope) children() []client.Object { return apply.Existing(s.job) }
