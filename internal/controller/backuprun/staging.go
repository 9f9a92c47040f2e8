package backuprun

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// A VolumeSnapshot, and the volume that is made from it, must be left behind by nobody. So the status says that the copy of a
// volume is read from a snapshot before the first one is made, their names follow from the status, and the status does not go
// on to another attempt, another volume or the end before they are being deleted. All that an operator which begins anew has
// to look for is what the status names. When the run goes, they go with it.

// findStaged reads what the present attempt has made, past the cache: the kind VolumeSnapshot has none, and what a stale one
// does not show would be left behind.
func (r *Reconciler) findStaged(ctx context.Context, s *scope) error {
	at := openVolume(s.run.Status.Volumes)
	if at == len(s.run.Status.Volumes) || s.run.Status.Volumes[at].ReadFrom != slipwayv1alpha1.ReadFromSnapshot {
		s.lookedAt = true
		return nil
	}
	key := types.NamespacedName{Namespace: s.run.Namespace, Name: desired.JobName(s.run, at, s.attempt())}
	if err := r.staging.Live.Get(ctx, key, s.snapshot); err != nil && !absent(err) {
		return outcome.Classify(fmt.Sprintf("VolumeSnapshot %q", key.Name), err)
	}
	if err := r.staging.Live.Get(ctx, key, s.staged); err != nil && !absent(err) {
		return outcome.Classify(fmt.Sprintf("PersistentVolumeClaim %q", key.Name), err)
	}
	if !r.staging.Ours(s.run, s.snapshot) {
		s.snapshot = &volumesnapshot.VolumeSnapshot{}
	}
	if !r.staging.Ours(s.run, s.staged) {
		s.staged = &corev1.PersistentVolumeClaim{}
	}
	if s.snapshot.UID != "" {
		s.volumes[at].SourceTime = earliest(s.volumes[at].SourceTime, s.snapshot.CreationTimestamp)
	}
	s.lookedAt = true
	return nil
}

// openVolume is the index of the first volume that has no verified copy.
func openVolume(volumes []slipwayv1alpha1.BackupVolume) int {
	for i := range volumes {
		if !volumes[i].Verified {
			return i
		}
	}
	return len(volumes)
}

// absent reports whether there is no such object, or that the cluster does not have its kind.
func absent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// inUse reports whether a volume cannot be read because one pod alone may use it, and does. A snapshot of it can.
func inUse(err error) bool {
	worst := outcome.Worst(err)
	return worst != nil && worst.Reason == slipwayv1alpha1.ReasonVolumeInUse
}

// stage makes what the Job reads, where that is a snapshot. ready reports whether the Job can be made. class is that of a snapshot
// that is not there yet.
func (r *Reconciler) stage(
	ctx context.Context, s *scope, volume *slipwayv1alpha1.BackupVolume, class string, live bool,
) (ready bool, err error) {
	if s.snapshot.Ready() {
		return true, r.stageClaim(ctx, s, volume.Claim)
	}
	s.staging = r.taking(volume)
	if s.snapshot.UID == "" {
		wanted := desired.VolumeSnapshot(s.run, s.current, s.attempt(), volume.Claim, class, live)
		if _, err := r.staging.CreateOnly(ctx, s.run, apply.Child{Desired: wanted, Current: s.snapshot}); err != nil {
			return false, err
		}
		volume.SourceTime = earliest(volume.SourceTime, s.snapshot.CreationTimestamp)
	}
	s.staging.Since = s.snapshot.CreationTimestamp.Time
	if !s.snapshot.DeletionTimestamp.IsZero() {
		return false, outcome.Waitingf(mover.StagingRecheck, slipwayv1alpha1.ReasonTerminating,
			"VolumeSnapshot %q is being deleted, and is made anew afterwards", s.snapshot.Name)
	}
	if failure := s.snapshot.Failure(); failure != "" {
		s.staging.Failure = fmt.Sprintf("the snapshot of volume %q failed: %s", volume.Claim, failure)
	}
	return false, s.checkSnapshot(volume.Claim)
}

// checkSnapshot refuses a VolumeSnapshot of another volume. Who may make VolumeSnapshots can give one the owner of ours.
func (s *scope) checkSnapshot(claim string) error {
	if s.snapshot.IsOf(claim) {
		return nil
	}
	return outcome.Blockedf(
		0, slipwayv1alpha1.ReasonNameConflict, "VolumeSnapshot %q is not of PersistentVolumeClaim %q: delete it", s.snapshot.Name, claim,
	)
}

// stageClaim makes the claim of the volume that is made from the snapshot.
func (r *Reconciler) stageClaim(ctx context.Context, s *scope, claim string) error {
	if err := s.checkSnapshot(claim); err != nil {
		return err
	}
	source := &corev1.PersistentVolumeClaim{}
	if err := r.staging.Live.Get(ctx, types.NamespacedName{Namespace: s.run.Namespace, Name: claim}, source); err != nil {
		return outcome.Classify(fmt.Sprintf("PersistentVolumeClaim %q", claim), err)
	}
	wanted := desired.StagedClaim(s.run, s.snapshot, source)
	if _, err := r.staging.CreateOnly(ctx, s.run, apply.Child{Desired: wanted, Current: s.staged}); err != nil {
		return err
	}
	if !desired.IsOf(s.staged, s.snapshot.Name) {
		return outcome.Blockedf(0, slipwayv1alpha1.ReasonNameConflict,
			"PersistentVolumeClaim %q is not made from VolumeSnapshot %q: delete it", s.staged.Name, s.snapshot.Name)
	}
	return nil
}

// choose names the class with which a snapshot of a volume is taken, or says why there is none. Only where the API server
// says that there is none does it say so: any other error of a read is one.
func (r *Reconciler) choose(ctx context.Context, s *scope, volume *slipwayv1alpha1.BackupVolume) (class, why string, err error) {
	in := volumesnapshot.Inputs{Spec: s.backup.Spec.VolumeSnapshot, Claim: &corev1.PersistentVolumeClaim{}}
	in.Claim.Name = volume.Claim
	switch {
	case in.Spec.VolumeSnapshotPolicy() == slipwayv1alpha1.VolumeSnapshotNever:
	case r.limited:
		in.Blind = "the operator is limited to some namespaces, and may not read what is in none"
	default:
		if err := r.lookAtVolume(ctx, s.run.Namespace, &in); err != nil {
			return "", "", err
		}
	}
	class, why, trouble := volumesnapshot.Choose(in)
	if class == "" && trouble == nil && volume.ReadFrom == slipwayv1alpha1.ReadFromSnapshot {
		// Never from the volume itself after a snapshot that failed.
		return "", "", outcome.Waitingf(mover.StagingRecheck, slipwayv1alpha1.ReasonNoVolumeSnapshotClass,
			"an earlier attempt took a snapshot of PersistentVolumeClaim %q, and now none can be taken: %s", volume.Claim, why)
	}
	if trouble != nil {
		return "", "", outcome.Waitingf(mover.StagingRecheck, trouble.Reason, "%s", trouble.Message)
	}
	return class, why, nil
}

// lookAtVolume reads the volume of a claim and the classes.
func (r *Reconciler) lookAtVolume(ctx context.Context, namespace string, in *volumesnapshot.Inputs) error {
	read := func(key types.NamespacedName, into client.Object, kind string) (bool, error) {
		if key.Name == "" {
			return false, nil
		}
		err := r.staging.Live.Get(ctx, key, into)
		if err != nil && !absent(err) {
			return false, outcome.Classify(fmt.Sprintf("%s %q", kind, key.Name), err)
		}
		return err == nil, nil
	}
	if found, err := read(types.NamespacedName{Namespace: namespace, Name: in.Claim.Name}, in.Claim,
		"PersistentVolumeClaim"); err != nil || !found {
		return err
	}
	volume, storage := &corev1.PersistentVolume{}, &storagev1.StorageClass{}
	if found, err := read(types.NamespacedName{Name: in.Claim.Spec.VolumeName}, volume, "PersistentVolume"); err != nil {
		return err
	} else if found {
		in.Volume = volume
	}
	if in.Volume == nil || in.Volume.Spec.CSI == nil {
		return nil
	}
	if class := in.Claim.Spec.StorageClassName; class != nil {
		if found, err := read(types.NamespacedName{Name: *class}, storage, "StorageClass"); err != nil {
			return err
		} else if found {
			in.StorageClass = storage
		}
	}
	classes := &volumesnapshot.ClassList{}
	err := r.staging.Live.List(ctx, classes)
	switch {
	case err == nil:
		in.Classes = classes.Items
		return nil
	case absent(err):
		in.Blind = "the cluster does not have the kind VolumeSnapshotClass"
		return nil
	default:
		return outcome.Classify("VolumeSnapshotClasses", err)
	}
}

// lookAtJob reads what only the Job tells: what it reads, and whether pods could write to that meanwhile.
func (s *scope) lookAtJob() {
	if s.job.UID == "" || s.current == len(s.volumes) || s.volumes[s.current].Dump != "" {
		return
	}
	taken := s.job.Annotations[desired.AnnotationVolumeSnapshot]
	live := s.job.Annotations[desired.AnnotationLive] != ""
	volume := &s.volumes[s.current]
	volume.ReadFrom = slipwayv1alpha1.ReadFromVolume
	s.live, s.crashConsistent = live && taken == "", live && taken != ""
	s.noSnapshot = s.job.Annotations[desired.AnnotationNoSnapshot]
	if taken == "" {
		return
	}
	volume.ReadFrom = slipwayv1alpha1.ReadFromSnapshot
	if at, err := time.Parse(time.RFC3339, taken); err == nil {
		volume.SourceTime = earliest(volume.SourceTime, metav1.NewTime(at))
	}
}

// earliest is the earlier of two times. The first one may be missing.
func earliest(a *metav1.Time, b metav1.Time) *metav1.Time {
	if a != nil && a.Before(&b) {
		return a
	}
	return &b
}

// wasRead reports whether the Job reads nothing any more.
func wasRead(s *scope) bool {
	return s.seen.Results[mover.StepSnapshot] != nil || s.seen.State == mover.Succeeded || s.seen.State == mover.Failed
}

// goesOn reports whether the status will not name any more what the present attempt has made.
func (s *scope) goesOn() bool {
	return s.next.Ended() || s.next.Attempt != s.attempt() || s.current != openVolume(s.run.Status.Volumes)
}

// release deletes the snapshot, and the claim of the volume that was made from it, as soon as the volume was read. The volume
// itself goes when the pod has let go of it. Until both are being deleted, the status does not go on.
func (r *Reconciler) release(ctx context.Context, s *scope, now time.Time) {
	if !wasRead(s) && !s.goesOn() {
		return
	}
	var err error
	if s.lookedAt {
		err = errors.Join(r.staging.Delete(ctx, s.run, s.staged), r.staging.Delete(ctx, s.run, s.snapshot))
	} else {
		err = s.err // it says why nobody knows whether there are any
	}
	if err == nil {
		return
	}
	s.err = errors.Join(s.err, err)
	s.volumes, s.verification, s.reportedRepositoryID = s.run.Status.Volumes, s.run.Status.Verification, s.run.Status.RepositoryID
	s.next = s.runProgress().Hold(nil, now)
	if worst := outcome.Worst(err); worst != nil {
		s.next = s.runProgress().Hold(worst.Trouble(), now)
	}
}
