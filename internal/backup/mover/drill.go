package mover

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
)

// ScratchFolder is where a drill restores to: each volume to a folder of its name.
const ScratchFolder = "/scratch"

// The steps of a drill, after StepRestore.
const (
	// StepCompare compares what was restored with the manifest of the source.
	StepCompare Step = "compare"
	// StepCommand is the user's own: another image, and its exit code is all that counts.
	StepCommand Step = "command"
)

// usesScratch tells which steps see what a drill restores.
func (s Step) usesScratch() bool { return s == StepRestore || s == StepCompare || s == StepCommand }

// Drill says what to restore and compare. With it, restore takes no other target.
type Drill struct {
	// Folder is where to: each volume to a new folder of its name.
	Folder string `json:"folder,omitempty"`
	// Volumes are what is expected of the newest copy of each volume.
	Volumes []DrillVolume `json:"volumes,omitempty"`
	// NotBefore is how new the copies have to be: the source was read then or later.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// AllowEmpty accepts a copy without any file.
	AllowEmpty bool `json:"allowEmpty,omitempty"`
}

// DrillVolume is what status says of the copy of a volume.
type DrillVolume struct {
	Volume   string `json:"volume"`
	Snapshot string `json:"snapshot"`
	Run      string `json:"run"`
	// SourceTime is what moment the copy is of at the least, in whole seconds.
	SourceTime time.Time `json:"sourceTime,omitzero"`
	// Manifest is the digest of the manifest.
	Manifest string `json:"manifest,omitempty"`
}

// DrillResult is what came of a step of a drill: what was restored, or what was compared.
type DrillResult struct {
	Volumes    int   `json:"volumes"`
	Files      int64 `json:"files"`
	Bytes      int64 `json:"bytes"`
	Entries    int64 `json:"entries"`
	Changed    int64 `json:"changed"`
	Unreadable int64 `json:"unreadable"`
}

// Scratch is the volume that a drill restores to. It goes with its pod.
type Scratch struct {
	// EmptyDir takes the disk of the node, otherwise it is a volume claim that is made for the pod.
	EmptyDir bool
	// Size is how much fits.
	Size resource.Quantity
	// Class is the storage class of the claim. Nil: the cluster's.
	Class *string
}

// Command is what the user wants to have run on what was restored.
type Command struct {
	Image string
	// Command replaces the entry point of the image. Empty: the image's own.
	Command []string
	// Resources are those of the container. Nil: the defaults.
	Resources *slipwayv1alpha1.ResourceRequirements
}

func (s Scratch) volume() *corev1ac.VolumeApplyConfiguration {
	volume := corev1ac.Volume().WithName("scratch")
	if s.EmptyDir {
		return volume.WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(s.Size))
	}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: s.Size}))
	if s.Class != nil {
		spec.WithStorageClassName(*s.Class)
	}
	return volume.WithEphemeral(corev1ac.EphemeralVolumeSource().WithVolumeClaimTemplate(
		corev1ac.PersistentVolumeClaimTemplate().WithSpec(spec)))
}

// mountScratch mounts what a drill restores. Who compares may only read it.
func mountScratch(step Step) *corev1ac.VolumeMountApplyConfiguration {
	mount := corev1ac.VolumeMount().WithName("scratch").WithMountPath(ScratchFolder)
	if step == StepCompare {
		mount.WithReadOnly(true)
	}
	return mount
}

// command is the container of the user's command. It sees what was restored and nothing else: no password, no credentials, no
// repository. It never runs as root.
func (j Job) command() *corev1ac.ContainerApplyConfiguration {
	container := corev1ac.Container().
		WithName(string(StepCommand)).
		WithImage(j.Command.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithWorkingDir(ScratchFolder).
		WithResources(j.resources(j.Command.Resources)).
		WithVolumeMounts(mountScratch(StepCommand))
	if len(j.Command.Command) > 0 {
		container.WithCommand(j.Command.Command...)
	}
	context := children.ContainerSecurity()
	if j.Identity.Root {
		context.WithRunAsNonRoot(true).WithRunAsUser(NobodyUser).WithRunAsGroup(NobodyUser)
	}
	return container.WithSecurityContext(context)
}

// ofCommand reads how the user's command ended. What it writes to its termination message is its own matter.
func (o *Observation) ofCommand(ended *corev1.ContainerStateTerminated) bool {
	const killed, terminated = 137, 143
	switch {
	case ended.ExitCode == 0:
		return true
	case ended.Reason == "OOMKilled":
		*o = o.fail(slipwayv1alpha1.ReasonDrillCommandFailed, "the command of the drill used more memory than its limit")
	case ended.ExitCode == killed || ended.ExitCode == terminated:
		*o = o.fail(slipwayv1alpha1.ReasonPodLost, "the command of the drill was killed")
	default:
		*o = o.fail(slipwayv1alpha1.ReasonDrillCommandFailed,
			fmt.Sprintf("the command of the drill ended with exit code %d: its log may say why", ended.ExitCode))
	}
	return false
}
