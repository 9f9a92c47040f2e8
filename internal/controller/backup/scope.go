package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields; status is computed from it at the end.
type scope struct {
	// backup is the Backup as the cache has it. Its status is replaced at the end.
	backup *slipwayv1alpha1.Backup
	// runs are its runs, the newest first: not those of a Backup of the same name that was deleted. Set by load.
	runs []slipwayv1alpha1.BackupRun
	// jobs are the Jobs of the Backup itself, and pods theirs. Set by load.
	jobs []batchv1.Job
	pods []corev1.Pod
	// drills are those of them that are drills; they are not among jobs. Set by load.
	drills []batchv1.Job
	// pullSecrets is what was found of the Secrets that images are pulled with. Set by load.
	pullSecrets pullsecret.Looked

	// source is what is to be copied, empty where the spec does not tell. Set by load.
	source string

	// place is where repositories are. Set by check.
	place mover.Place
	// plan is when runs are due, and what is promised. Set by check.
	plan plan
	// promise is the schedule that is promised by, nil where there never was any. Set by check.
	promise *slipwayv1alpha1.BackupPromise

	// missing is what the spec names and there is not, nil where all is there. Set by resolve.
	missing *outcome.Error
	// repositoryID is that of the repository, empty before the first run. Set by keepKey.
	repositoryID string
	// lastSlot is the newest slot that was seen to, and missed how many went by. Set by start.
	lastSlot *metav1.Time
	missed   int64
	// started is the run that was made. Set by start.
	started string
	// kept is how the removal of old copies went. Set by keep.
	kept *slipwayv1alpha1.BackupRetentionStatus
	// keeping reports whether it goes on. Set by keep.
	keeping bool
	// busy says which Job it waits for, and stuck what keeps the pod of its own Job from starting. Set by keep.
	busy  string
	stuck *health.Trouble
	// snapshots and size are what the repository holds and takes, where that is news. Set by keep.
	snapshots *int64
	size      *int64

	// drill is how drills go, nil where there are none. Set by load, then by runDrill.
	drill *slipwayv1alpha1.BackupDrillStatus

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// load reads the Backup and everything that belongs to it from the cache. It returns nil when the Backup is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{backup: &slipwayv1alpha1.Backup{}}
	if found, err := r.kit.Get(ctx, key, s.backup); !found || err != nil {
		return nil, err
	}
	runs, jobs := &slipwayv1alpha1.BackupRunList{}, &batchv1.JobList{}
	err := errors.Join(
		r.kit.Client.List(ctx, runs, watch.OwnedBy(s.backup, indexBackup)),
		r.kit.Client.List(ctx, jobs, watch.OwnedBy(s.backup, indexBackup)),
	)
	if err != nil {
		return nil, fmt.Errorf("list BackupRuns and Jobs: %w", err)
	}
	s.runs = slices.DeleteFunc(runs.Items, func(run slipwayv1alpha1.BackupRun) bool { return !run.IsOf(s.backup) })
	slices.SortFunc(s.runs, compareRuns)
	for i := range jobs.Items {
		switch job := &jobs.Items[i]; {
		case !metav1.IsControlledBy(job, s.backup):
		case job.Labels[slipwayv1alpha1.LabelDrill] != "":
			s.drills = append(s.drills, *job)
		default:
			s.jobs = append(s.jobs, *job)
		}
	}
	if s.backup.Drill() != nil {
		s.drill = &slipwayv1alpha1.BackupDrillStatus{}
		if before := s.backup.Status.Drill; before != nil {
			s.drill = before.DeepCopy()
		}
	}
	s.source = sourceOf(&s.backup.Spec)
	if s.pullSecrets, err = pullsecret.Look(
		ctx, r.kit.Client, key.Namespace, pullSecretsOf(s.backup), "spec.mover.imagePullSecrets", "",
	); err != nil {
		return nil, err
	}
	s.pods, err = watch.Pods(ctx, r.kit.Client, s.backup, indexBackup)
	s.lastSlot, s.missed, s.kept = s.backup.Status.LastSlot, s.backup.Status.MissedSlots, s.backup.Status.Retention
	s.repositoryID = s.backup.Status.RepositoryID
	return s, err
}

// compareRuns is negative when a is newer than b.
func compareRuns(a, b slipwayv1alpha1.BackupRun) int {
	return newestFirst(a.CreationTimestamp.Time, a.Name, b.CreationTimestamp.Time, b.Name)
}

// newestFirst is negative when the run a is newer than the run b, going by when they were made. Names decide about runs that
// were made in the same second.
func newestFirst(aMade time.Time, a string, bMade time.Time, b string) int {
	if order := bMade.Compare(aMade); order != 0 {
		return order
	}
	return strings.Compare(b, a)
}

// open is a run that has not ended, or nil.
func (s *scope) open() *slipwayv1alpha1.BackupRun {
	for i := range s.runs {
		if !s.runs[i].Ended() {
			return &s.runs[i]
		}
	}
	return nil
}

// troubled is the run that waits for what does not come by itself, or is tried again, or nil.
func (s *scope) troubled() *slipwayv1alpha1.BackupRun {
	run := s.open()
	if run == nil {
		return nil
	}
	switch run.Status.Reason {
	case "", slipwayv1alpha1.ReasonQueued, slipwayv1alpha1.ReasonRepositoryBusy, slipwayv1alpha1.ReasonTransferring,
		slipwayv1alpha1.ReasonVerifying,
		slipwayv1alpha1.ReasonTakingSnapshot, slipwayv1alpha1.ReasonHookRunning, slipwayv1alpha1.ReasonReleasing:
		return nil
	default:
		return run
	}
}

// newest is the newest run that has ended in one of these phases, or nil.
func (s *scope) newest(phases ...slipwayv1alpha1.BackupPhase) *slipwayv1alpha1.BackupRun {
	for i := range s.runs {
		if slices.Contains(phases, s.runs[i].Status.Phase) {
			return &s.runs[i]
		}
	}
	return nil
}
