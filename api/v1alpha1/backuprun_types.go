package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupRun is one run of a Backup: of a time of its schedule, or by hand. It is done when a verified copy of every volume is
// in the repository, or when that has failed. Deleting it does not delete the copy.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=slwbkr;bkr,categories=slipway
// +kubebuilder:printcolumn:name="Backup",type=string,JSONPath=`.spec.backup`,description="The Backup that it is a run of"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="How far it has come"
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.summary.progress`,description="How much is done"
// +kubebuilder:printcolumn:name="Files",type=integer,JSONPath=`.status.files`,description="Files in the copy"
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.summary.size`,description="Size of the copy, and what was added to the repository"
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.status.summary.duration`,description="How long it took"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,description="Why it has that phase"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must be at most 52 characters: pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must hold only lower case letters, digits and '-': pods are named after it"
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec cannot be changed: make another BackupRun",fieldPath=".spec"
type BackupRun struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which Backup to run. It cannot be changed.
	// +required
	Spec BackupRunSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status BackupRunStatus `json:"status,omitempty"`
}

// BackupRunList is a list of BackupRuns.
//
// +kubebuilder:object:root=true
type BackupRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BackupRun `json:"items"`
}

// BackupRunSpec is which Backup to run.
type BackupRunSpec struct {
	// backup is the name of the Backup, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="spec.backup must be the name of a Backup"
	// +required
	Backup string `json:"backup"`
	// slot is the time of the schedule that the run is for. Default: none, for a run by hand.
	// +optional
	Slot *metav1.Time `json:"slot,omitempty"`
}

// BackupRunStatus is how far a run has come.
type BackupRunStatus struct {
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
	// attempt is how many times it was tried, up to 3. What one attempt has stored the next one does not store again.
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
	// source is what spec.source of the Backup said when the run began, with its kind in front: pvc/shop-data. Absent in a run of
	// an older release.
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Source string `json:"source,omitempty"`
	// volumes are what is backed up, in the order in which that is done, at most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=claim
	// +optional
	Volumes []BackupVolume `json:"volumes,omitempty"`
	// leftOut is how many volumes of a StatefulSet were not copied, because a run takes 32: volumes of pods that the StatefulSet
	// had before it was scaled down, those with the highest ordinals.
	// +optional
	LeftOut int32 `json:"leftOut,omitempty"`
	// files and bytes are what the copies hold, of all volumes.
	// +optional
	Files int64 `json:"files,omitempty"`
	// bytes is the size of all files.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// addedBytes is by how much the repository grew.
	// +optional
	AddedBytes int64 `json:"addedBytes,omitempty"`
	// unreadable is how many paths are missing in the copies. It is 0 unless the Backup allows partial copies.
	// +optional
	Unreadable int64 `json:"unreadable,omitempty"`
	// vanished is how many paths were removed between the listing of their folder and the reading. They are not in the copies.
	// +optional
	Vanished int64 `json:"vanished,omitempty"`
	// changed is how many files changed while they were read. They are in the copies as they were read.
	// +optional
	Changed int64 `json:"changed,omitempty"`
	// progress of the volume that is being read or verified. Absent in a run that has ended.
	// +optional
	Progress *TransferProgress `json:"progress,omitempty"`
	// verification is how the copies were verified. Absent: they were not.
	// +optional
	Verification *BackupVerification `json:"verification,omitempty"`
	// repositoryID identifies the repository that holds the copies.
	// +optional
	RepositoryID string `json:"repositoryID,omitempty"`
	// hooks is how the hooks do, of the last volume and attempt that had some.
	// +optional
	Hooks *BackupRunHooks `json:"hooks,omitempty"`
	// summary holds what kubectl get shows.
	// +optional
	Summary TransferSummary `json:"summary,omitzero"`
	// conditions: Ready and Progressing are always present; Stalled, LiveSource and HookAfterFailed only while true.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackupVolume is the copy of one volume.
type BackupVolume struct {
	// claim is the PersistentVolumeClaim. Of a dump it is the word dump: no volume is read then.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Claim string `json:"claim"`
	// dump is the name of the file that holds the output of the command of spec.dump of the Backup. Absent: the copy is of a
	// volume.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Dump string `json:"dump,omitempty"`
	// snapshotID names the copy in the repository. Absent: there is none yet.
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// readFrom is VolumeSnapshot where the copy is read from a snapshot of the volume, Volume where it is read from the
	// volume itself. Absent: that is not decided yet, or it is a dump.
	// +optional
	ReadFrom VolumeReading `json:"readFrom,omitempty"`
	// sourceTime is what moment the copy is of: when the volume began to be read, or when the snapshot of it was asked for that
	// was read. What was written until then is in the copy. Of a dump it is just before the command was started.
	// +optional
	SourceTime *metav1.Time `json:"sourceTime,omitempty"`
	// manifestDigest is the SHA-256 digest of the manifest that was taken of the source: what the copy has to be compared with
	// once it is restored. The manifest is in the repository, and its digest here, so that an exchanged one is noticed.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ManifestDigest string `json:"manifestDigest,omitempty"`
	// verified tells that the copy was read back.
	// +optional
	Verified bool `json:"verified,omitempty"`
	// files is how many files the copy holds.
	// +optional
	Files int64 `json:"files,omitempty"`
	// bytes is the size of all files.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// addedBytes is by how much the repository grew.
	// +optional
	AddedBytes int64 `json:"addedBytes,omitempty"`
	// unreadable is how many paths are missing in the copy.
	// +optional
	Unreadable int64 `json:"unreadable,omitempty"`
	// skipped is how many sockets and devices there were, which are not kept.
	// +optional
	Skipped int64 `json:"skipped,omitempty"`
	// vanished is how many paths were removed between the listing of their folder and the reading. They are not in the copy.
	// +optional
	Vanished int64 `json:"vanished,omitempty"`
	// changed is how many files changed while they were read. They are in the copy as they were read.
	// +optional
	Changed int64 `json:"changed,omitempty"`
}

// TransferProgress is how much of a volume is done.
type TransferProgress struct {
	// percent that is done, from 0 to 100, by bytes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent int32 `json:"percent"`
	// bytes that are done.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// totalBytes is how much there is, as far as it has been counted.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
	// estimatedCompletionTime is when it will be done, if it goes on like this.
	// +optional
	EstimatedCompletionTime *metav1.Time `json:"estimatedCompletionTime,omitempty"`
}

// BackupVerification is how copies were verified.
type BackupVerification struct {
	// mode is how closely.
	// +required
	Mode VerifyMode `json:"mode"`
	// time is when.
	// +required
	Time metav1.Time `json:"time"`
	// readFiles is how many files were read back.
	// +optional
	ReadFiles int64 `json:"readFiles,omitempty"`
	// readBytes is how many bytes were read back.
	// +optional
	ReadBytes int64 `json:"readBytes,omitempty"`
}

// TransferSummary holds what kubectl get shows of a run or a restore.
type TransferSummary struct {
	// progress, for example 42%.
	// +optional
	Progress string `json:"progress,omitempty"`
	// size, for example 1.2 GiB (+3.4 MiB).
	// +optional
	Size string `json:"size,omitempty"`
	// duration, for example 2m10s.
	// +optional
	Duration string `json:"duration,omitempty"`
}

// GetConditions returns the conditions.
func (r *BackupRun) GetConditions() []metav1.Condition { return r.Status.Conditions }

// Ended reports whether the run will not change any more.
func (r *BackupRun) Ended() bool {
	return r.Status.Phase == BackupCompleted || r.Status.Phase == BackupFailed
}

// IsOf reports whether the run is one of this Backup. A name is not enough: a Backup that was deleted may have had the same one.
// The controller of a run tells, by its UID. One by hand has none until the operator gives it one, before it begins. Of a run
// that has begun without, its time tells, and while its Backup is being deleted none begins. One that was made after the Backup is
// of it: the API server writes both times. One that was made before is of it when it began afterwards, going by the operator's clock.
func (r *BackupRun) IsOf(backup *Backup) bool {
	if r.Spec.Backup != backup.Name || r.Namespace != backup.Namespace {
		return false
	}
	if controller := metav1.GetControllerOfNoCopy(r); controller != nil {
		return controller.UID == backup.UID
	}
	if r.Status.StartTime == nil {
		return backup.DeletionTimestamp.IsZero()
	}
	return !r.CreationTimestamp.Before(&backup.CreationTimestamp) || !r.Status.StartTime.Before(&backup.CreationTimestamp)
}
