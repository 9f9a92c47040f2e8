package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// AnnotationBackupHooks stands on a pod, from the template of its workload. It says which commands the hooks of Backups may
	// run there: a JSON list of objects with the fields container and command, for example
	// [{"container":"db","command":["/freeze"]}]. On a WebApp it is copied to the pods.
	AnnotationBackupHooks = "slipway.dev/backup-hooks"
	// AnnotationLeaveHooks on a BackupRun that is being deleted lets it go at once, though its after hook has not run.
	AnnotationLeaveHooks = "slipway.dev/leave-hooks"
)

// BackupHooks are commands that the operator runs in the pods that can write to a volume, around the reading of it. A pod has
// to allow each command by its annotation slipway.dev/backup-hooks.
//
// +kubebuilder:validation:MinProperties=1
type BackupHooks struct {
	// before runs before a volume is read, in one pod after the other, by name. Default: nothing.
	// +optional
	Before *BackupBeforeHook `json:"before,omitempty"`
	// after runs when a volume has been read, in all pods at once. Once before was begun it always runs: also when the run
	// fails or is deleted. It may run more than once. Default: nothing.
	// +optional
	After *BackupHook `json:"after,omitempty"`
}

// BackupHook is a command.
type BackupHook struct {
	// container is the container of the pod that it runs in. A workload in spec.source has to have it in its pod template.
	// Default: the first that mounts the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Container string `json:"container,omitempty"`
	// command is the program and its arguments, from 1 to 32 of up to 512 characters. No shell reads it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +required
	Command []string `json:"command"`
	// timeout is how long the command may take, from 1s to 15m. A command that takes longer has failed. It is not killed.
	// Default 1m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,5}(ms|s|m|h))+$') || duration(self) >= duration('1s') && duration(self) <= duration('15m')",message="timeout of a hook must be from 1s to 15m"
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
}

// BackupBeforeHook is a command that runs before a volume is read.
type BackupBeforeHook struct {
	BackupHook `json:",inline"`
	// onError says what follows when the command fails. Fail fails the run. Continue reads the volume all the same, and the
	// condition LiveSource says so. A command that is not allowed fails the run in any case. Default Fail.
	// +kubebuilder:default=Fail
	// +optional
	OnError HookErrorPolicy `json:"onError,omitempty"`
}

// HookErrorPolicy is what follows when a command fails.
//
// +kubebuilder:validation:Enum=Fail;Continue
type HookErrorPolicy string

// What follows when a command fails.
const (
	// HookFail fails the run.
	HookFail HookErrorPolicy = "Fail"
	// HookContinue reads the volume all the same.
	HookContinue HookErrorPolicy = "Continue"
)

// MaxHookPods is in how many pods the hooks of a volume may run.
const MaxHookPods = 32

// BackupRunHooks is how the hooks do around the reading of one volume.
type BackupRunHooks struct {
	// claim is the volume.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Claim string `json:"claim"`
	// attempt is the attempt that they belong to.
	// +required
	Attempt int32 `json:"attempt"`
	// round counts how often they were begun anew in the attempt, from 1.
	// +required
	Round int32 `json:"round"`
	// phase is Before while the before hooks run, Held while the volume is read, After while the after hooks run, and Done.
	// Until it is Done the after hooks are owed.
	// +required
	Phase HookPhase `json:"phase"`
	// before and after are the hooks as the Backup had them in the beginning.
	// +optional
	Before *BackupBeforeHook `json:"before,omitempty"`
	// after is what is owed.
	// +optional
	After *BackupHook `json:"after,omitempty"`
	// captured tells that the volume had been read when the after hooks began.
	// +optional
	Captured bool `json:"captured,omitempty"`
	// quiesced tells that before succeeded in every pod that could write to the volume until it had been read.
	// +optional
	Quiesced bool `json:"quiesced,omitempty"`
	// pods are those that the hooks run in, by name, at most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=pod
	// +optional
	Pods []BackupRunHookPod `json:"pods,omitempty"`
}

// BackupRunHookPod is how the hooks do in a pod.
type BackupRunHookPod struct {
	// pod is the name of the pod.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`
	// uid is that of the pod. No hook runs in another one of the name.
	// +required
	UID types.UID `json:"uid"`
	// before is how the before hook does. Absent: it was not begun.
	// +optional
	Before *BackupHookResult `json:"before,omitempty"`
	// after is how the after hook does. Absent: it has not ended once.
	// +optional
	After *BackupHookResult `json:"after,omitempty"`
}

// BackupHookResult is how a command does in a pod.
type BackupHookResult struct {
	// phase is Running, Retrying, Succeeded, Failed, or Skipped where the pod has gone.
	// +required
	Phase HookResultPhase `json:"phase"`
	// reason is why it failed: one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says it in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// time is when it began or, once it has ended, when it ended.
	// +required
	Time metav1.Time `json:"time"`
	// tries is how often it has ended.
	// +optional
	Tries int32 `json:"tries,omitempty"`
}

// HookPhase is how far the hooks of a volume are.
//
// +kubebuilder:validation:Enum=Before;Held;After;Done
type HookPhase string

// The phases.
const (
	// HooksBefore runs the before hooks.
	HooksBefore HookPhase = "Before"
	// HooksHeld reads the volume.
	HooksHeld HookPhase = "Held"
	// HooksAfter runs the after hooks.
	HooksAfter HookPhase = "After"
	// HooksDone owes nothing.
	HooksDone HookPhase = "Done"
)

// HookResultPhase is how a command does.
//
// +kubebuilder:validation:Enum=Running;Retrying;Succeeded;Failed;Skipped
type HookResultPhase string

// How a command does.
const (
	// HookRunning has been begun.
	HookRunning HookResultPhase = "Running"
	// HookRetrying has failed, and is tried again.
	HookRetrying HookResultPhase = "Retrying"
	// HookSucceeded has ended with exit code 0.
	HookSucceeded HookResultPhase = "Succeeded"
	// HookFailed has failed.
	HookFailed HookResultPhase = "Failed"
	// HookSkipped found the pod gone, and what before did there with it.
	HookSkipped HookResultPhase = "Skipped"
)
