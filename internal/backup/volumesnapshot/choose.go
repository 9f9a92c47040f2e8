package volumesnapshot

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Inputs is all that the decision looks at.
type Inputs struct {
	// Spec is what the Backup says.
	Spec *slipwayv1alpha1.BackupVolumeSnapshot
	// Claim is the claim, and Volume its volume, nil where it has none.
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
	// StorageClass is that of the claim, nil where it has none.
	StorageClass *storagev1.StorageClass
	// Classes are those of the cluster.
	Classes []Class
	// Blind says in a clause why the operator could not look. Then the rest, but for the spec and the claim, is empty.
	Blind string
}

// Choose names the class with which a snapshot of the volume is taken. Where there is none, why says so in a clause, and the
// volume is read as it is. It is never read so when a snapshot is required, or when a class is named or set as the default
// one and cannot be used as the user may think: that is trouble.
func Choose(in Inputs) (class, why string, trouble *health.Trouble) {
	if in.Spec.VolumeSnapshotPolicy() == slipwayv1alpha1.VolumeSnapshotNever {
		return "", "spec.volumeSnapshot.policy is Never", nil
	}
	named := in.Spec.VolumeSnapshotClass()
	why = in.unfit()
	if why == "" {
		class, why, trouble = in.classOf(in.Volume.Spec.CSI.Driver, named)
	}
	if why != "" && (named != "" || in.Spec.VolumeSnapshotPolicy() == slipwayv1alpha1.VolumeSnapshotRequire) {
		return "", "", &health.Trouble{Reason: slipwayv1alpha1.ReasonNoVolumeSnapshotClass, Message: fmt.Sprintf(
			"no snapshot of PersistentVolumeClaim %q can be taken, as spec.volumeSnapshot of the Backup asks for: %s", in.Claim.Name, why)}
	}
	return class, why, trouble
}

// unfit says why no snapshot of the volume can be read, whatever classes there are. A volume is made from the snapshot with
// the StorageClass of the claim, so that class must not leave it behind.
func (in Inputs) unfit() string {
	switch storage := in.StorageClass; {
	case in.Blind != "":
		return in.Blind
	case in.Volume == nil:
		return "the claim has no volume yet"
	case in.Volume.Spec.CSI == nil:
		return "it is no CSI volume"
	case storage == nil:
		return "the claim has no StorageClass to make a volume from the snapshot with"
	case storage.Provisioner != in.Volume.Spec.CSI.Driver:
		return fmt.Sprintf("StorageClass %q makes volumes of another driver", storage.Name)
	case storage.ReclaimPolicy != nil && *storage.ReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		return fmt.Sprintf(
			"StorageClass %q has reclaimPolicy %s: each run would leave a volume behind", storage.Name, *storage.ReclaimPolicy,
		)
	default:
		return ""
	}
}

// classOf picks the class of a driver that is named, or is the default one.
func (in Inputs) classOf(driver, named string) (name, why string, trouble *health.Trouble) {
	var found *Class
	for i := range in.Classes {
		class := &in.Classes[i]
		switch {
		case named != "" && class.Name != named, named == "" && (class.Driver != driver || !class.Default()):
			continue
		case found != nil:
			return "", "", &health.Trouble{Reason: slipwayv1alpha1.ReasonNoVolumeSnapshotClass, Message: fmt.Sprintf(
				"VolumeSnapshotClasses %q and %q of the driver %q are both the default one: name one in spec.volumeSnapshot.className",
				found.Name, class.Name, driver)}
		}
		found = class
	}
	switch {
	case found == nil && named != "":
		return "", fmt.Sprintf("there is no VolumeSnapshotClass %q", named), nil
	case found == nil:
		return "", fmt.Sprintf("no VolumeSnapshotClass of the driver %q is the default one", driver), nil
	case found.Driver != driver:
		return "", fmt.Sprintf("VolumeSnapshotClass %q is of the driver %q, and the volume of %q", named, found.Driver, driver), nil
	case found.DeletionPolicy != "Delete":
		return "", fmt.Sprintf("VolumeSnapshotClass %q has deletionPolicy %s: each run would leave a snapshot behind", found.Name,
			found.DeletionPolicy), nil
	default:
		return found.Name, "", nil
	}
}
