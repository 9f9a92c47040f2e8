package backuprun

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields; status is computed from it at the end.
type scope struct {
	// run is the BackupRun as the cache has it. Its status is replaced at the end.
	run *slipwayv1alpha1.BackupRun
	// backup is what it is a run of, with no UID where there is none. Set by load.
	backup *slipwayv1alpha1.Backup
	// siblings are the runs of the same Backup, this one among them where it is one. Set by load.
	siblings []slipwayv1alpha1.BackupRun
	// jobs are the Jobs of the run, and pods theirs. Set by load.
	jobs []batchv1.Job
	pods []corev1.Pod

	// place is where repositories are. Set by prepare.
	place mover.Place
	// source is what the Backup names. Set by prepare.
	source string
	// leftOut is how many volumes there is no room for. Set by prepare.
	leftOut int32
	// volumes are what is copied, with what is known of each. Set by prepare, then by judge.
	volumes []slipwayv1alpha1.BackupVolume
	// current is the index in volumes of the one that has no verified copy yet, len(volumes) if all have one. Set by prepare.
	current int

	// hooks is how the hooks do: a copy of what the status has, which the phases change. Set by load.
	hooks *slipwayv1alpha1.BackupRunHooks

	// snapshot is the VolumeSnapshot of the present attempt, and staged the claim of the volume that is made from it, with no
	// UID where there is none. lookedAt reports whether they were looked for, or there can be none. Set by prepare, then by
	// transfer.
	snapshot *volumesnapshot.VolumeSnapshot
	staged   *corev1.PersistentVolumeClaim
	lookedAt bool
	// staging is what the VolumeSnapshot has come to, nil when nothing has to be waited for. Set by transfer.
	staging *mover.Staging

	// queued reports whether the run waits for admission. Set by wait.
	queued bool

	// job is the Job of the present attempt, with no UID where there is none. Set by prepare, then by transfer.
	job *batchv1.Job

	// seen is what the Job has come to. Set by judge.
	seen mover.Observation
	// live reports whether pods could write to the volume while it was read, and noSnapshot why no snapshot was taken.
	// crashConsistent reports whether they could, and a snapshot was read. Set by judge.
	live            bool
	noSnapshot      string
	crashConsistent bool
	// quiesced reports whether the before hooks had succeeded in those pods. Set by judge.
	quiesced bool
	// progress is how far it is. Set by listen.
	progress *slipwayv1alpha1.TransferProgress
	// verification and reportedRepositoryID are what the Jobs have reported. Set by judge.
	verification         *slipwayv1alpha1.BackupVerification
	reportedRepositoryID string
	// next is what follows. Set by judge.
	next mover.Next

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the BackupRun and everything that belongs to it from the cache. It returns nil when the run is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{
		run: &slipwayv1alpha1.BackupRun{}, backup: &slipwayv1alpha1.Backup{}, job: &batchv1.Job{},
		snapshot: &volumesnapshot.VolumeSnapshot{}, staged: &corev1.PersistentVolumeClaim{},
	}
	if found, err := r.kit.Get(ctx, key, s.run); !found || err != nil {
		return nil, err
	}
	s.hooks = s.run.Status.Hooks.DeepCopy()
	if _, err := r.kit.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: s.run.Spec.Backup}, s.backup); err != nil {
		return nil, err
	}
	runs, jobs := &slipwayv1alpha1.BackupRunList{}, &batchv1.JobList{}
	err := errors.Join(
		r.kit.Client.List(ctx, runs, client.InNamespace(key.Namespace), client.MatchingFields{indexBackup: s.run.Spec.Backup}),
		r.kit.Client.List(ctx, jobs, watch.OwnedBy(s.run, indexRun)),
	)
	if err != nil {
		return nil, fmt.Errorf("list BackupRuns and Jobs: %w", err)
	}
	s.siblings = slices.DeleteFunc(runs.Items, func(run slipwayv1alpha1.BackupRun) bool { return !run.IsOf(s.backup) })
	for i := range jobs.Items {
		if metav1.IsControlledBy(&jobs.Items[i], s.run) {
			s.jobs = append(s.jobs, jobs.Items[i])
		}
	}
	s.pods, err = watch.Pods(ctx, r.kit.Client, s.run, indexRun)
	return s, err
}

// repositoryID is the ID of the Backup's repository, as far as any run has reported it.
func (s *scope) repositoryID() string {
	if s.backup.Status.RepositoryID != "" {
		return s.backup.Status.RepositoryID
	}
	for i := range s.siblings {
		if id := s.siblings[i].Status.RepositoryID; id != "" {
			return id
		}
	}
	return ""
}

// attempt is which attempt is the present one, from 1.
func (s *scope) attempt() int32 { return max(1, s.run.Status.Attempt) }
