package backuprun

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// prepare finds out what is to be copied, and what has been.
func (r *Reconciler) prepare(ctx context.Context, s *scope) error {
	s.volumes, s.source, s.leftOut = slices.Clone(s.run.Status.Volumes), s.run.Status.Source, s.run.Status.LeftOut
	if err := r.findStaged(ctx, s); err != nil {
		return err
	}
	if s.backup.UID == "" {
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonBackupNotFound, "there is no Backup %q (spec.backup)", s.run.Spec.Backup)
	}
	if err := r.adopt(ctx, s); err != nil {
		return err
	}
	place, err := mover.ParseDestination(s.backup.Spec.Destination)
	if err != nil {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination of the Backup: %v", err)
	}
	s.place = place
	if len(s.volumes) == 0 {
		if err := r.findVolumes(ctx, s); err != nil {
			return err
		}
	}
	if err := s.checkDestination(); err != nil {
		return err
	}
	for s.current < len(s.volumes) && s.volumes[s.current].Verified {
		s.current++
	}
	if s.current == len(s.volumes) {
		return nil
	}
	name := desired.JobName(s.run, s.current, s.attempt())
	for i := range s.jobs {
		if s.jobs[i].Name == name {
			s.job = &s.jobs[i]
		}
	}
	return nil
}

// findVolumes finds out what the source of the Backup means.
func (r *Reconciler) findVolumes(ctx context.Context, s *scope) error {
	source, err := mover.ParseSource(s.backup.Spec.Source)
	if err == nil {
		s.source = source.Text()
	}
	if s.backup.Spec.Dump != nil {
		s.volumes = []slipwayv1alpha1.BackupVolume{{Claim: slipwayv1alpha1.DumpVolume, Dump: s.backup.DumpName()}}
		return nil
	}
	if err != nil {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.source of the Backup: %v", err)
	}
	found, err := r.claims(ctx, s.run.Namespace, source)
	if err != nil {
		return err
	}
	s.leftOut = int32(min(found.leftOut, math.MaxInt32))
	for _, claim := range found.names {
		s.volumes = append(s.volumes, slipwayv1alpha1.BackupVolume{Claim: claim})
	}
	return nil
}

// checkDestination refuses a repository on one of the volumes that are copied. A dump reads none.
func (s *scope) checkDestination() error {
	for _, volume := range s.volumes {
		if volume.Dump != "" {
			continue
		}
		if err := mover.CheckOwnClaim(s.place, volume.Claim); err != nil {
			return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination of the Backup: %v", err)
		}
	}
	return nil
}

// maxVolumes is how many volumes a run may copy: so many does status.volumes hold.
const maxVolumes = 32

// transfer makes the Job of the present attempt, unless it is there.
func (r *Reconciler) transfer(ctx context.Context, s *scope, now time.Time) error {
	if s.current == len(s.volumes) || s.job.UID != "" {
		return nil
	}
	if err := r.references.Check(ctx, s.run.Namespace, s.secrets()); err != nil {
		return err
	}
	in := desired.Inputs{
		Run: s.run, Backup: s.backup, Place: s.place, Image: r.image,
		Volume: s.current, Claim: s.volumes[s.current].Claim, Attempt: s.attempt(), RepositoryID: s.repositoryID(),
	}
	used := r.use(ctx, s, &in)
	if used != nil && (s.volumes[s.current].Dump != "" || !inUse(used)) {
		return used
	}
	if in.Deadline = s.runProgress().Deadline().Sub(now); in.Deadline <= 0 {
		return nil // judge says so
	}
	if in.Dump == nil {
		if ready, err := r.hold(ctx, s, &in, used, now); !ready || err != nil {
			return err
		}
	}
	job, err := desired.Job(in)
	if err != nil {
		return err
	}
	if err := r.confirmBackup(ctx, s); err != nil {
		return err
	}
	return r.writers.Create(ctx, s.backup, s.run, apply.Child{Desired: job, Current: s.job})
}

// use finds out how the pod gets at what it copies.
func (r *Reconciler) use(ctx context.Context, s *scope, in *desired.Inputs) error {
	if name := s.volumes[s.current].Dump; name != "" {
		dump, id, err := r.dump(ctx, s)
		if err != nil {
			return err
		}
		dump.Name = name // as status has it, whatever the spec says by now
		in.Dump, in.Identity = dump, id.As(s.backup.Spec.Mover)
		return nil
	}
	used, err := transfer.Use(ctx, r.kit.Live, types.NamespacedName{Namespace: s.run.Namespace, Name: in.Claim},
		slipwayv1alpha1.ReasonSourceNotFound, "spec.source of the Backup", transfer.Recheck)
	in.Node, in.Tolerations, in.Live, in.Identity = used.Node, used.Tolerations, used.Live, used.Identity.As(s.backup.Spec.Mover)
	return err
}

// secrets are the Secrets that the pod mounts. The credentials come first: nobody but the user makes them.
func (s *scope) secrets() []transfer.Reference {
	var list []transfer.Reference
	if s.place.Bucket != "" {
		list = append(list, transfer.Credentials(s.backup.CredentialsSecret(), "spec.credentials of the Backup"))
	}
	return append(list, transfer.Encryption(s.backup.EncryptionSecret(), "spec.encryption of the Backup"))
}

// tidy deletes the Jobs whose results stand in the status. The last one of a run that failed stays with its log, as long as
// the run does.
func (r *Reconciler) tidy(ctx context.Context, s *scope) error {
	var err error
	for i := range s.jobs {
		if job := &s.jobs[i]; !s.keeps(job) {
			err = errors.Join(err, r.kit.Applier.Delete(ctx, s.run, job))
		}
	}
	return err
}

// keeps tells which Jobs stay, going by the status that is stored: what it does not tell yet is only in the Job.
func (s *scope) keeps(job *batchv1.Job) bool {
	if s.run.Status.Phase == slipwayv1alpha1.BackupCompleted {
		return false
	}
	current := 0
	for current < len(s.run.Status.Volumes) && s.run.Status.Volumes[current].Verified {
		current++
	}
	if job.Name != desired.JobName(s.run, current, s.attempt()) {
		return false
	}
	if s.run.Status.Phase != slipwayv1alpha1.BackupFailed {
		return true
	}
	if job.Annotations[desired.AnnotationVolumeSnapshot] != "" {
		return false // its pod would hold the volume that was made from a snapshot
	}
	// One that still runs, or waits for its pod, must not do so for ever.
	return mover.Observe(job, s.pods, desired.Steps).State == mover.Failed
}

// children are what the status speaks of.
func (s *scope) children() []client.Object {
	if s.backup.UID == "" {
		return apply.Existing(s.job)
	}
	return apply.Existing(s.backup, s.job)
}
