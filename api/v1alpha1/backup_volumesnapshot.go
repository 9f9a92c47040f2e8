package v1alpha1

// BackupVolumeSnapshot says whether volumes are read from a snapshot of them.
//
// +kubebuilder:validation:XValidation:rule="!has(self.className) || !has(self.policy) || self.policy != 'Never'",message="volumeSnapshot.className does not go with volumeSnapshot.policy Never"
type BackupVolumeSnapshot struct {
	// policy is Auto, Require or Never. Auto takes a snapshot of each CSI volume whose driver has a default
	// VolumeSnapshotClass, and reads other volumes while pods may write to them. Require takes one, or the run fails. Never
	// takes none. A snapshot that fails is never followed by a copy without one. Default Auto.
	// +kubebuilder:default=Auto
	// +optional
	Policy VolumeSnapshotPolicy `json:"policy,omitempty"`
	// className names the VolumeSnapshotClass, of up to 253 characters. It has to be of the volume's driver and to have the
	// deletionPolicy Delete; otherwise the run fails. Default: the one of the driver with the annotation
	// snapshot.storage.kubernetes.io/is-default-class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="volumeSnapshot.className must be the name of a VolumeSnapshotClass"
	// +optional
	ClassName string `json:"className,omitempty"`
}

// VolumeSnapshotPolicy is when a volume is read from a snapshot of it.
//
// +kubebuilder:validation:Enum=Auto;Require;Never
type VolumeSnapshotPolicy string

// When a volume is read from a snapshot of it.
const (
	// VolumeSnapshotAuto is where a snapshot can be taken.
	VolumeSnapshotAuto VolumeSnapshotPolicy = "Auto"
	// VolumeSnapshotRequire is always: where none can be taken there is no copy.
	VolumeSnapshotRequire VolumeSnapshotPolicy = "Require"
	// VolumeSnapshotNever is never.
	VolumeSnapshotNever VolumeSnapshotPolicy = "Never"
)

// VolumeSnapshotPolicy is the policy, also where the spec says nothing.
func (s *BackupVolumeSnapshot) VolumeSnapshotPolicy() VolumeSnapshotPolicy {
	if s == nil || s.Policy == "" {
		return VolumeSnapshotAuto
	}
	return s.Policy
}

// VolumeSnapshotClass is the class that the spec names, or empty.
func (s *BackupVolumeSnapshot) VolumeSnapshotClass() string {
	if s == nil {
		return ""
	}
	return s.ClassName
}

// VolumeReading is what the copy of a volume is read from.
//
// +kubebuilder:validation:Enum=Volume;VolumeSnapshot
type VolumeReading string

// What the copy of a volume is read from.
const (
	// ReadFromVolume is the volume itself.
	ReadFromVolume VolumeReading = "Volume"
	// ReadFromSnapshot is a volume that was made from a snapshot.
	ReadFromSnapshot VolumeReading = "VolumeSnapshot"
)

// Conditions and reasons of volume snapshots.
const (
	// ConditionCrashConsistent is True when a volume that pods could write to was read from a snapshot of it: the copy is what
	// a machine has on disk when it loses power at that moment. It is absent otherwise.
	ConditionCrashConsistent = "CrashConsistent"
	// ReasonVolumeSnapshotTaken: a snapshot of the volume was taken, and the copy read from it.
	ReasonVolumeSnapshotTaken = "VolumeSnapshotTaken"
	// ReasonTakingSnapshot: a snapshot of the volume is being taken.
	ReasonTakingSnapshot = "TakingSnapshot"
	// ReasonNoVolumeSnapshotClass: a snapshot of the volume is asked for, and none can be taken.
	ReasonNoVolumeSnapshotClass = "NoVolumeSnapshotClass"
	// ReasonVolumeSnapshotFailed: the snapshot of the volume failed, or was not ready for 10 minutes.
	ReasonVolumeSnapshotFailed = "VolumeSnapshotFailed"
)
