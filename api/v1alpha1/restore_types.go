package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationRestoreUID stands on a PersistentVolumeClaim that a Restore has made. Its value is the UID of that Restore. No
// other Restore takes the claim for its own, not even a later one of the same name.
const AnnotationRestoreUID = "slipway.dev/restore-uid"

// Restore brings a copy of a volume back, once. The volume is one that exists and is empty, or a new one.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slwrs,categories=slipway
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target.claim`,description="The volume that is written"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far it has come"
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.summary.progress`,description="How much is done"
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.summary.size`,description="Size of what was restored"
// +kubebuilder:printcolumn:name="Of",type=date,JSONPath=`.status.sourceTime`,description="When the source of the copy was read"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why it has that phase"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must hold only lower case letters, digits and '-': pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec cannot be changed: make another Restore",fieldPath=".spec"
type Restore struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to bring back, and where to. It cannot be changed.
	// +required
	Spec RestoreSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status RestoreStatus `json:"status,omitempty"`
}

// RestoreList is a list of Restores.
//
// +kubebuilder:object:root=true
type RestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Restore `json:"items"`
}

// RestoreSpec is what to bring back, and where to.
//
// +kubebuilder:validation:XValidation:rule="[has(self.backup), has(self.run), has(self.repository)].filter(x, x).size() == 1",message="spec: set exactly one of backup, run and repository"
// +kubebuilder:validation:XValidation:rule="[has(self.run), has(self.snapshot), has(self.asOf)].filter(x, x).size() <= 1",message="spec: set at most one of run, snapshot and asOf"
type RestoreSpec struct {
	// backup is the name of a Backup in the same namespace: its newest verified copy is restored.
	// +optional
	Backup *LocalReference `json:"backup,omitempty"`
	// run is the name of a BackupRun in the same namespace: its copy is restored.
	// +optional
	Run *LocalReference `json:"run,omitempty"`
	// repository is a repository that no Backup of this namespace belongs to: that of a lost cluster, or of another
	// namespace. Its newest verified copy is restored.
	// +optional
	Repository *RestoreRepository `json:"repository,omitempty"`

	// snapshot is the ID of the copy, instead of the newest one. It need not be verified.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{16,64}$')",message="spec.snapshot must be an ID of a copy, as status.volumes of a BackupRun has it"
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// asOf restores the newest verified copy whose source had been read until then, for example 2026-05-01T12:00:00Z. If
	// there is none the restore fails: no other copy is taken.
	// +optional
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// volume is the PersistentVolumeClaim that the copy is of, or dump. Required where the repository holds copies of
	// several.
	// +optional
	Volume *LocalReference `json:"volume,omitempty"`
	// paths restricts the restore to these files and folders, at most 100. They come to the same path in the target. Each
	// has to be in the copy. Default: all.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	Paths []BackupPath `json:"paths,omitempty"`

	// target is the volume to write.
	// +required
	Target RestoreTarget `json:"target"`
	// overwrite accepts a target that holds something. A file that is in the way of one of the copy is replaced. What is
	// not in the copy stays. Default false: then a target that holds anything is refused, and left as it is.
	// +optional
	Overwrite bool `json:"overwrite,omitempty"`
	// deadline is how long the restore may take, with its retries, from 1m to 24h. Default 12h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="spec.deadline must be at least 1m"
	// +optional
	Deadline Duration `json:"deadline,omitempty"`
	// mover says how the pod runs that writes the volume. Owners other than its own user need runAs Root.
	// +optional
	Mover *BackupMover `json:"mover,omitempty"`
}

// RestoreRepository is a repository, and the Secrets that open it.
type RestoreRepository struct {
	// destination is where it is, as in a Backup, with <namespace>/<name> of the Backup that made it at its end: for example
	// s3://my-backup-bucket/team/shop-data.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^(s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]|pvc://[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)(/[-A-Za-z0-9_.]*[-A-Za-z0-9_][-A-Za-z0-9_.]*)*/?$')",message="spec.repository.destination must be s3://<bucket>/<prefix> or pvc://<claim>/<path>, of letters, digits, '-', '_' and '.'"
	// +required
	Destination string `json:"destination"`
	// encryption names the Secret with the key password. Required.
	// +required
	Encryption LocalReference `json:"encryption"`
	// credentials names the Secret for an S3 destination, as in a Backup. Default: slipway-backup.
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`
}

// RestoreTarget is the volume to write.
type RestoreTarget struct {
	// claim is the name of the PersistentVolumeClaim, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="spec.target.claim must be the name of a PersistentVolumeClaim"
	// +required
	Claim string `json:"claim"`
	// create makes the claim. Default: it has to be there.
	// +optional
	Create *RestoreClaim `json:"create,omitempty"`
}

// RestoreClaim is a claim to be made. It stays when the Restore is deleted.
type RestoreClaim struct {
	// size of the volume, for example 10Gi.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a number of bytes, such as 10Gi, 500M or 1000000"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('0')) > 0",message="size must be greater than 0"
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^[0-9]*[.][0-9]+$|[mun]$|[eE]-')",message="size must be a whole number of bytes; m stands for thousandths, M and Mi for millions"
	// +required
	Size resource.Quantity `json:"size"`
	// storageClassName is the class of the volume. Default: the cluster's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// accessMode is ReadWriteOnce, ReadWriteOncePod or ReadWriteMany. Default ReadWriteOnce.
	// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany
	// +kubebuilder:default=ReadWriteOnce
	// +optional
	AccessMode string `json:"accessMode,omitempty"`
}

// RestoreStatus is how far a restore has come.
type RestoreStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Pending, Running, Completed or Failed. Completed and Failed do not change any more.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`
	// reason is why it has that phase: one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// reasonTime is since when the reason is this one.
	// +optional
	ReasonTime *metav1.Time `json:"reasonTime,omitempty"`
	// message says it in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// attempt is how many times it was tried, up to 3.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// startTime is when the first attempt began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// attemptTime is when the present attempt began, or the next one begins.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// snapshotID names the copy that is restored.
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// sourceTime is when the source of the copy was read.
	// +optional
	SourceTime *metav1.Time `json:"sourceTime,omitempty"`
	// files is how many files were written.
	// +optional
	Files int64 `json:"files,omitempty"`
	// bytes is the size of the files that were written.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// ownersNotKept is how many owners could not be set, which needs mover.runAs Root.
	// +optional
	OwnersNotKept int64 `json:"ownersNotKept,omitempty"`
	// attributesNotKept is how many extended attributes the volume did not take.
	// +optional
	AttributesNotKept int64 `json:"attributesNotKept,omitempty"`
	// progress is how much is done. Absent in a restore that has ended.
	// +optional
	Progress *TransferProgress `json:"progress,omitempty"`
	// summary holds what kubectl get shows.
	// +optional
	Summary TransferSummary `json:"summary,omitzero"`
	// conditions: Ready and Progressing are always present; Stalled and OwnersNotKept only while true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GetConditions returns the conditions.
func (r *Restore) GetConditions() []metav1.Condition { return r.Status.Conditions }

// Ended reports whether the restore will not change any more.
func (r *Restore) Ended() bool {
	return r.Status.Phase == BackupCompleted || r.Status.Phase == BackupFailed
}
