package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupDrill restores the newest verified copy to a volume of its own, and compares it with the manifest that was taken of the
// source. Without a schedule a drill is made by hand only: kubectl slipway backup drill, or the annotation
// slipway.dev/drill with a value that it did not have before.
//
// +kubebuilder:validation:XValidation:rule="!has(self.command) || has(self.image)",message="spec.verify.drill.command needs spec.verify.drill.image"
type BackupDrill struct {
	// schedule is when to do it: the five fields of cron, for example "0 5 * * 0", in the zone of spec.timeZone. It begins up to
	// a tenth of the time between two drills later, at most 10 minutes, and waits while a run or the removal of old copies is
	// under way. Default: by hand only.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// image is what to run after the comparison, with the restored volumes in folders of their names in /scratch. The drill
	// passes only when it ends with exit code 0. It runs at the restricted Pod Security level, never as root, and sees neither
	// the repository nor its password. Default: nothing.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]*$')",message="spec.verify.drill.image must not hold white space"
	// +optional
	Image string `json:"image,omitempty"`
	// command is what to run in the image, at most 32 words of at most 4096 characters. Default: what the image says.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// scratch is the volume to restore to.
	// +optional
	Scratch *DrillScratch `json:"scratch,omitempty"`
	// deadline is how long a drill may take, with its retries, from 1m to 24h. Default 12h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1m')",message="spec.verify.drill.deadline must be at least 1m"
	// +optional
	Deadline Duration `json:"deadline,omitempty"`
}

// DrillScratch is the volume that a drill restores to. It is made for the pod of the drill, and goes with it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.storageClassName) || !has(self.type) || self.type != 'EmptyDir'",message="spec.verify.drill.scratch.storageClassName does not go with type EmptyDir"
type DrillScratch struct {
	// type is Claim or EmptyDir. Claim makes a PersistentVolumeClaim for the pod, EmptyDir takes the disk of its node. Default
	// Claim.
	// +kubebuilder:default=Claim
	// +optional
	Type ScratchType `json:"type,omitempty"`
	// size is how much fits, for example 20Gi. Default: as much as the volumes of the source ask for, or what the copies hold
	// and a fifth more where they are gone.
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",message="size must be a number of bytes, such as 10Gi, 500M or 1000000"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('0')) > 0",message="size must be greater than 0"
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^[0-9]*[.][0-9]+$|[mun]$|[eE]-')",message="size must be a whole number of bytes; m stands for thousandths, M and Mi for millions"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// storageClassName is the class of the claim. Default: that of the first volume of the source, or the cluster's where that
	// is gone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// ScratchType is where a drill restores to.
//
// +kubebuilder:validation:Enum=Claim;EmptyDir
type ScratchType string

// Where a drill restores to.
const (
	// ScratchClaim is a PersistentVolumeClaim that is made for the pod.
	ScratchClaim ScratchType = "Claim"
	// ScratchEmptyDir is the disk of the node.
	ScratchEmptyDir ScratchType = "EmptyDir"
)

// BackupDrillStatus is how drills went.
type BackupDrillStatus struct {
	// phase is that of the newest drill: Pending, Running, Completed or Failed. Empty: there was none.
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
	// lastTime is when the newest drill ended that has.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
	// lastSuccessTime is when the newest drill ended that passed.
	// +optional
	LastSuccessTime *metav1.Time `json:"lastSuccessTime,omitempty"`
	// nextTime is when the next drill begins. Absent while suspended, and without a schedule.
	// +optional
	NextTime *metav1.Time `json:"nextTime,omitempty"`
	// run is the BackupRun whose copies the newest drill is about.
	// +optional
	Run string `json:"run,omitempty"`
	// snapshotID names the copy in the repository. Of several volumes it is that of the first.
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// comparedFiles is how many files of the newest drill were read back and hold what was read from the source.
	// +optional
	ComparedFiles int64 `json:"comparedFiles,omitempty"`
	// comparedBytes is how large they are together.
	// +optional
	ComparedBytes int64 `json:"comparedBytes,omitempty"`

	// name is that of the newest drill. Its Jobs are named after it.
	// +optional
	Name string `json:"name,omitempty"`
	// attempt is how many times it was tried, up to 3.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// jobs counts the Jobs of all drills so far, and orders them.
	// +optional
	Jobs int64 `json:"jobs,omitempty"`
	// startTime is when the newest drill began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// attemptTime is when the present attempt began, or the next one begins.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
	// lastSlot is the newest time of the schedule that was seen to.
	// +optional
	LastSlot *metav1.Time `json:"lastSlot,omitempty"`
	// lastRequest identifies the value of the annotation slipway.dev/drill that was seen to.
	// +optional
	LastRequest string `json:"lastRequest,omitempty"`
}

// UnderWay reports whether the newest drill has not ended.
func (d *BackupDrillStatus) UnderWay() bool {
	return d != nil && (d.Phase == BackupPending || d.Phase == BackupRunning)
}

// Drill is what the spec says of drills, or nil where there are none.
func (b *Backup) Drill() *BackupDrill { return b.Spec.Drill() }

// Drill is what the spec says of drills, or nil where there are none.
func (s *BackupSpec) Drill() *BackupDrill {
	if s.Verify == nil {
		return nil
	}
	return s.Verify.Drill
}
