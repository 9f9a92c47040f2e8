package desired

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/children"
)

const (
	// AnnotationVolumeSnapshot on a Job tells that it reads a snapshot of the volume, and when that was asked for.
	AnnotationVolumeSnapshot = "slipway.dev/volume-snapshot"
	// AnnotationNoSnapshot on a Job tells why it reads the volume itself.
	AnnotationNoSnapshot = "slipway.dev/no-volume-snapshot"
)

// reads is the claim that the Job mounts: none for a dump.
func (in Inputs) reads() string {
	switch {
	case in.Dump != nil:
		return ""
	case in.fromSnapshot():
		return in.Snapshot.Name
	default:
		return in.Claim
	}
}

func (in Inputs) fromSnapshot() bool { return in.Snapshot != nil && in.Snapshot.UID != "" }

// sourceTime is when the snapshot was asked for that is read: whatever was written until then is in the copy. It is zero where
// the volume itself is read.
func (in Inputs) sourceTime() time.Time {
	if !in.fromSnapshot() {
		return time.Time{}
	}
	return in.Snapshot.CreationTimestamp.UTC()
}

// annotations are what nobody can find out any more when the Job has ended.
func (in Inputs) annotations() map[string]string {
	annotations := map[string]string{}
	if in.Live {
		annotations[AnnotationLive] = "true"
	}
	switch {
	case in.fromSnapshot():
		annotations[AnnotationVolumeSnapshot] = in.Snapshot.CreationTimestamp.UTC().Format(time.RFC3339)
	case in.Live && in.NoSnapshot != "":
		annotations[AnnotationNoSnapshot] = in.NoSnapshot
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// VolumeSnapshot returns the snapshot of a volume for an attempt. live reports whether pods may write to the volume.
func VolumeSnapshot(
	run *slipwayv1alpha1.BackupRun, volume int, attempt int32, claim, class string, live bool,
) *volumesnapshot.ApplyConfiguration {
	owner := children.Owner{Kind: Kind, Object: run, Label: slipwayv1alpha1.LabelBackupRun}
	snapshot := volumesnapshot.Wanted(JobName(run, volume, attempt), run.Namespace, claim, class)
	snapshot.WithLabels(owner.Labels()).WithOwnerReferences(owner.Reference())
	if live {
		snapshot.WithAnnotations(map[string]string{AnnotationLive: "true"})
	}
	return snapshot
}

// StagedClaim returns the claim of the volume that is made from a snapshot, as the source has one. Its driver can do with the
// snapshot what it can do with the source.
func StagedClaim(
	run *slipwayv1alpha1.BackupRun, snapshot *volumesnapshot.VolumeSnapshot, source *corev1.PersistentVolumeClaim,
) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	owner := children.Owner{Kind: Kind, Object: run, Label: slipwayv1alpha1.LabelBackupRun}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(source.Spec.AccessModes...).
		WithResources(corev1ac.VolumeResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceStorage: stagedSize(snapshot, source)})).
		WithDataSource(corev1ac.TypedLocalObjectReference().
			WithAPIGroup(volumesnapshot.GroupVersion.Group).WithKind(volumesnapshot.Kind).WithName(snapshot.Name))
	if class := source.Spec.StorageClassName; class != nil {
		spec.WithStorageClassName(*class)
	}
	if mode := source.Spec.VolumeMode; mode != nil {
		spec.WithVolumeMode(*mode)
	}
	return corev1ac.PersistentVolumeClaim(snapshot.Name, run.Namespace).
		WithLabels(owner.Labels()).WithOwnerReferences(owner.Reference()).WithSpec(spec)
}

// stagedSize is the size of the source, or what the snapshot needs where that is more.
func stagedSize(snapshot *volumesnapshot.VolumeSnapshot, source *corev1.PersistentVolumeClaim) resource.Quantity {
	size := source.Spec.Resources.Requests[corev1.ResourceStorage]
	if has := source.Status.Capacity[corev1.ResourceStorage]; has.Cmp(size) > 0 {
		size = has
	}
	if snapshot.Status != nil && snapshot.Status.RestoreSize != nil && snapshot.Status.RestoreSize.Cmp(size) > 0 {
		size = *snapshot.Status.RestoreSize
	}
	return size
}

// IsOf reports whether a claim is that of a volume made from a snapshot.
func IsOf(claim *corev1.PersistentVolumeClaim, snapshot string) bool {
	from := claim.Spec.DataSource
	return from != nil && from.APIGroup != nil && *from.APIGroup == volumesnapshot.GroupVersion.Group &&
		from.Kind == volumesnapshot.Kind && from.Name == snapshot
}
