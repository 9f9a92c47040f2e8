package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupPhase is how far a run has come.
//
// +kubebuilder:validation:Enum=Pending;Running;Completed;Failed
type BackupPhase string

// The phases of a run.
const (
	// BackupPending waits: for its turn, or for something that it needs.
	BackupPending BackupPhase = "Pending"
	// BackupRunning reads the volume, or verifies the copy.
	BackupRunning BackupPhase = "Running"
	// BackupCompleted has a verified copy of every volume.
	BackupCompleted BackupPhase = "Completed"
	// BackupFailed has ended without.
	BackupFailed BackupPhase = "Failed"
)

// BackupStatus is which copies there are, and whether they can be relied on.
type BackupStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is that of the newest run. Empty: there was none.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`
	// lastBackupTime is what moment the newest verified copy of the present source is of: when its snapshot was asked for, or
	// reading began. A run that fails does not move it. It is absent when spec.source has changed since.
	// +optional
	LastBackupTime *metav1.Time `json:"lastBackupTime,omitempty"`
	// lastBackupSource is the source that lastBackupTime is about: spec.source with its kind in front, such as pvc/shop-data, and
	// " (dump)" behind it where the copy is of what a command writes.
	// +optional
	LastBackupSource string `json:"lastBackupSource,omitempty"`
	// promise is the schedule by which RPOMet goes: that of the spec. While nobody can understand that one, it is the last one that
	// could be. Absent: there was none.
	// +optional
	Promise *BackupPromise `json:"promise,omitempty"`
	// message says in a sentence how the newest run ended, or what is wrong.
	// +optional
	Message string `json:"message,omitempty"`
	// lastRun is the newest run.
	// +optional
	LastRun *BackupLastRun `json:"lastRun,omitempty"`
	// lastSlot is the newest time of the schedule that was seen to.
	// +optional
	LastSlot *metav1.Time `json:"lastSlot,omitempty"`
	// nextRunTime is when the next run starts. Absent while suspended, and without a schedule.
	// +optional
	NextRunTime *metav1.Time `json:"nextRunTime,omitempty"`
	// missedSlots is how many times of the schedule went by without a run since the Backup was made, because the operator
	// was away, a run took too long, or the Backup was suspended.
	// +optional
	MissedSlots int64 `json:"missedSlots,omitempty"`
	// consecutiveFailures is how many runs failed since the last one that completed.
	// +optional
	ConsecutiveFailures int32 `json:"consecutiveFailures,omitempty"`
	// snapshots is how many copies the repository holds, as far as it is known.
	// +optional
	Snapshots int64 `json:"snapshots,omitempty"`
	// size is what the repository takes at the destination, as of the last maintenance.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// repositoryID identifies the repository. It stands in the encryption Secret too. From the first run on no other
	// repository is used, and none is made.
	// +optional
	RepositoryID string `json:"repositoryID,omitempty"`
	// retention is how the last removal of old copies went.
	// +optional
	Retention *BackupRetentionStatus `json:"retention,omitempty"`
	// drill is how drills went. Absent without spec.verify.drill.
	// +optional
	Drill *BackupDrillStatus `json:"drill,omitempty"`
	// summary holds what kubectl get shows.
	// +optional
	Summary BackupSummary `json:"summary,omitzero"`
	// conditions: Ready, Verified, RPOMet and RetentionApplied are always present; Stalled, Suspended and LiveSource only
	// while true; DrillPassed only with spec.verify.drill.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackupSummary holds what kubectl get shows.
type BackupSummary struct {
	// reason is why the backup is not ready. Empty: it is.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// BackupPromise is the schedule that a copy is promised by.
type BackupPromise struct {
	// schedule is a cron expression.
	// +required
	Schedule string `json:"schedule"`
	// timeZone is its zone. Absent: UTC.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// BackupLastRun is the newest run of a Backup.
type BackupLastRun struct {
	// name of the BackupRun.
	// +required
	Name string `json:"name"`
	// phase of the BackupRun.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`
	// reason is why it has that phase.
	// +optional
	Reason string `json:"reason,omitempty"`
	// completionTime is when it ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// BackupRetentionStatus is how the last removal of old copies went.
type BackupRetentionStatus struct {
	// run is the BackupRun after which it was done.
	// +required
	Run string `json:"run"`
	// runTime is when that run was made.
	// +optional
	RunTime *metav1.Time `json:"runTime,omitempty"`
	// rules identifies the rules by which it was done: what the spec and the annotation slipway.dev/may-expire said.
	// +optional
	Rules string `json:"rules,omitempty"`
	// reason is why nothing was removed. Empty: what was to be removed is.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it in a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// removed is how many copies were removed.
	// +optional
	Removed int64 `json:"removed,omitempty"`
	// maintenanceTime is when unused space was last freed.
	// +optional
	MaintenanceTime *metav1.Time `json:"maintenanceTime,omitempty"`
	// maintenanceSeconds is how long that took, in seconds.
	// +optional
	MaintenanceSeconds int64 `json:"maintenanceSeconds,omitempty"`
}

// GetConditions returns the conditions.
func (b *Backup) GetConditions() []metav1.Condition { return b.Status.Conditions }
