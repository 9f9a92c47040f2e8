package mover

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
)

// Where things are in the pod of a Job.
const (
	// VolumeFolder is the volume that is read or written.
	VolumeFolder = "/volume"

	repositoryFolder  = "/repository"
	encryptionFolder  = "/encryption"
	credentialsFolder = "/credentials"
	cacheFolder       = "/cache"
	configFolder      = "/config"
)

// volumeName is what the volume is called in the pod.
const volumeName = "volume"

// annotationConfig holds the configuration, and reaches the program as a file.
const annotationConfig = "slipway.dev/mover-config"

// NobodyUser is who a pod runs as when nobody knows better: the user of the image.
const NobodyUser = 65532

// Step is a command of slipway-backup. The steps of a Job run one after the other, each in a process of its own.
type Step string

// The steps.
const (
	StepSnapshot Step = "snapshot"
	StepVerify   Step = "verify"
	StepRestore  Step = "restore"
	StepExpire   Step = "expire"
	StepMaintain Step = "maintain"
	StepDelete   Step = "delete"
)

// usesVolume tells which steps see the volume.
func (s Step) usesVolume() bool { return s == StepSnapshot || s == StepRestore }

// Writes reports whether a pod may write to a repository: unless each of its steps only reads, as those of restores and drills do.
// The user's command of a drill does not see the repository.
func Writes(pod *corev1.PodSpec) bool {
	writes := func(container corev1.Container) bool {
		switch Step(container.Name) {
		case StepRestore, StepCompare, StepCommand:
			return false
		default:
			return true
		}
	}
	return slices.ContainsFunc(pod.InitContainers, writes) || slices.ContainsFunc(pod.Containers, writes)
}

// RestoresTo reports whether a pod restores to a claim. One that only has its repository there does not.
func RestoresTo(pod *corev1.PodSpec, claim string) bool {
	restores := func(container corev1.Container) bool { return Step(container.Name) == StepRestore }
	writes := func(volume corev1.Volume) bool {
		return volume.Name == volumeName && volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
	}
	return slices.ContainsFunc(pod.Volumes, writes) &&
		(slices.ContainsFunc(pod.InitContainers, restores) || slices.ContainsFunc(pod.Containers, restores))
}

// Identity is who the processes of a pod run as.
type Identity struct {
	// Root runs them as root, with the capabilities that a step needs. User, Group and Groups do not count then.
	Root bool
	// User and Group are numbers. Default: NobodyUser.
	User, Group int64
	// Groups are further groups: those that own the files of the volume.
	Groups []int64
}

// Job is a Job that runs slipway-backup.
type Job struct {
	// Name and Namespace are those of the Job.
	Name, Namespace string
	// Labels are on the Job and its pods.
	Labels map[string]string
	// Owner is who the Job goes with.
	Owner *metav1ac.OwnerReferenceApplyConfiguration
	// Image is that of slipway-backup.
	Image string
	// Steps are what it does. The result of each is the termination message of the container of that name.
	Steps []Step
	// Config is the configuration for all steps, but for where the repository is.
	Config Config
	// Place is where the repository is: the last element of its path is the name of the Backup.
	Place Place
	// Encryption and Credentials are Secrets. Credentials is for a bucket.
	Encryption, Credentials string
	// Claim is the PersistentVolumeClaim that is read or written. Empty: none.
	Claim string
	// Node is the node that the pod has to be on, because a pod there uses the claim. Empty: any.
	Node string
	// Tolerations are those of the pod that uses the claim: it may be on a node that others keep away from.
	Tolerations []corev1.Toleration
	// NewClaim reports whether the claim was made for this Job, so that nobody depends yet on what its files belong to.
	NewClaim bool
	// Mover is what a user says of the pod. Nil: nothing.
	Mover *slipwayv1alpha1.BackupMover
	// Dump is the container of a command whose output is kept instead of a volume. Nil: none.
	Dump *DumpContainer
	// Identity is who it runs as.
	Identity Identity
	// Resources are those of each step. Nil: the defaults.
	Resources *slipwayv1alpha1.ResourceRequirements
	// Deadline is how long it may take.
	Deadline time.Duration
	// Scratch is where a drill restores to, and Command what runs on it in the end. Nil: there is none.
	Scratch *Scratch
	Command *Command
}

// Build returns the Job. It fails when the configuration cannot be written as JSON.
func (j Job) Build() (*batchv1ac.JobApplyConfiguration, error) {
	config := j.Config
	config.Repository.EncryptionFolder = encryptionFolder
	if j.Place.Path != "" {
		config.Repository.IDFile = IDFile(path.Base(j.Place.Path))
	}
	config.Repository.WorkFolder = cacheFolder
	if j.Place.Bucket != "" {
		config.Repository.S3 = &S3{Bucket: j.Place.Bucket, Prefix: j.Place.Path, CredentialsFolder: credentialsFolder}
	} else {
		config.Repository.Filesystem = &Filesystem{Path: path.Join(repositoryFolder, j.Place.Path), Shared: true}
	}
	config.Snapshot.Dump = j.Dump.config()
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	pod := corev1ac.PodSpec().
		WithRestartPolicy(corev1.RestartPolicyNever).
		WithAutomountServiceAccountToken(false).
		WithEnableServiceLinks(false).
		WithTerminationGracePeriodSeconds(60).
		WithSecurityContext(j.podSecurity()).
		WithVolumes(j.volumes()...)
	if j.Node != "" {
		pod.WithAffinity(onNode(j.Node))
	}
	for i := range j.Tolerations {
		pod.WithTolerations(tolerationOf(&j.Tolerations[i]))
	}
	j.userWants(pod)
	if j.Dump != nil {
		if err := j.Dump.addTo(pod, j.Image); err != nil {
			return nil, err
		}
	}
	for i, step := range j.Steps {
		if i < len(j.Steps)-1 {
			pod.WithInitContainers(j.container(step))
		} else {
			pod.WithContainers(j.container(step))
		}
	}
	return batchv1ac.Job(j.Name, j.Namespace).
		WithLabels(j.Labels).
		WithOwnerReferences(j.Owner).
		WithSpec(batchv1ac.JobSpec().
			WithBackoffLimit(0). // the operator decides about another attempt, and when
			WithActiveDeadlineSeconds(max(1, int64(j.Deadline/time.Second))).
			WithTemplate(corev1ac.PodTemplateSpec().
				WithLabels(j.Labels).
				WithAnnotations(map[string]string{annotationConfig: string(raw)}).
				WithSpec(pod))), nil
}

func (j Job) container(step Step) *corev1ac.ContainerApplyConfiguration {
	if step == StepCommand {
		return j.command()
	}
	mounts := []*corev1ac.VolumeMountApplyConfiguration{
		corev1ac.VolumeMount().WithName("config").WithMountPath(configFolder).WithReadOnly(true),
		corev1ac.VolumeMount().WithName("encryption").WithMountPath(encryptionFolder).WithReadOnly(true),
		corev1ac.VolumeMount().WithName("cache").WithMountPath(cacheFolder),
	}
	if j.Place.Bucket != "" {
		mounts = append(mounts, corev1ac.VolumeMount().WithName("credentials").WithMountPath(credentialsFolder).WithReadOnly(true))
	} else {
		mounts = append(mounts, corev1ac.VolumeMount().WithName("repository").WithMountPath(repositoryFolder))
	}
	if j.Claim != "" && step.usesVolume() {
		mount := corev1ac.VolumeMount().WithName(volumeName).WithMountPath(VolumeFolder)
		if step != StepRestore {
			mount.WithReadOnly(true)
		}
		mounts = append(mounts, mount)
	}
	if j.Dump != nil && step == StepSnapshot {
		mounts = append(mounts, socketMount())
	}
	if j.Scratch != nil && step.usesScratch() {
		mounts = append(mounts, mountScratch(step))
	}
	return corev1ac.Container().
		WithName(string(step)).
		WithImage(j.Image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs(string(step), "--config", path.Join(configFolder, "config.json")).
		WithResources(j.resources(j.Resources)).
		WithSecurityContext(j.containerSecurity(step)).
		WithVolumeMounts(mounts...)
}

// resources are those of a container, or the defaults.
func (Job) resources(asked *slipwayv1alpha1.ResourceRequirements) *corev1ac.ResourceRequirementsApplyConfiguration {
	if resources := children.Resources(asked); resources != nil {
		return resources
	}
	return corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
		}).
		WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")})
}

// volumes are those of the pod. The claim is mounted read-only by the container, not by the volume: some storage attaches a
// read-only volume in another way, which does not go with the pods that write to it.
func (j Job) volumes() []*corev1ac.VolumeApplyConfiguration {
	volumes := []*corev1ac.VolumeApplyConfiguration{
		corev1ac.Volume().WithName("config").WithDownwardAPI(corev1ac.DownwardAPIVolumeSource().WithItems(
			corev1ac.DownwardAPIVolumeFile().WithPath("config.json").WithFieldRef(
				corev1ac.ObjectFieldSelector().WithFieldPath("metadata.annotations['" + annotationConfig + "']")))),
		corev1ac.Volume().WithName("encryption").WithSecret(corev1ac.SecretVolumeSource().WithSecretName(j.Encryption)),
		corev1ac.Volume().WithName("cache").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
	}
	claim := func(name, claim string) *corev1ac.VolumeApplyConfiguration {
		return corev1ac.Volume().WithName(name).WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(claim))
	}
	if j.Place.Bucket != "" {
		volumes = append(volumes,
			corev1ac.Volume().WithName("credentials").WithSecret(corev1ac.SecretVolumeSource().WithSecretName(j.Credentials)))
	} else {
		volumes = append(volumes, claim("repository", j.Place.Claim))
	}
	if j.Claim != "" {
		volumes = append(volumes, claim(volumeName, j.Claim))
	}
	if j.Scratch != nil {
		volumes = append(volumes, j.Scratch.volume())
	}
	return volumes
}

// podSecurity sets no fsGroup where there is a claim with files: with one the kubelet would give the files of the volume to
// another group. A claim that was just made has none, and often belongs to root alone: there the kubelet makes the root of the
// volume one that the pod may write to. The scratch of a drill is new too, and the pod's own.
func (j Job) podSecurity() *corev1ac.PodSecurityContextApplyConfiguration {
	if j.Identity.Root {
		return corev1ac.PodSecurityContext().
			WithRunAsUser(0).WithRunAsGroup(0).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
	}
	user := j.Identity.User
	if user == 0 {
		user = NobodyUser
	}
	group := j.Identity.Group
	if group == 0 {
		group = user
	}
	context := children.PodSecurity().WithRunAsUser(user).WithRunAsGroup(group)
	if len(j.Identity.Groups) > 0 {
		context.WithSupplementalGroups(j.Identity.Groups...)
	}
	switch {
	case j.NewClaim:
		context.WithFSGroup(group).WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	case j.Scratch != nil && j.Claim == "" && j.Place.Claim == "":
		context.WithFSGroup(group)
	}
	return context
}

func (j Job) containerSecurity(step Step) *corev1ac.SecurityContextApplyConfiguration {
	context := children.ContainerSecurity().WithReadOnlyRootFilesystem(true)
	if !j.Identity.Root {
		return context
	}
	switch step {
	case StepSnapshot, StepCompare:
		context.Capabilities.WithAdd("DAC_READ_SEARCH")
	case StepRestore:
		context.Capabilities.WithAdd("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID")
	}
	return context
}

// onNode has a pod scheduled on a node. The scheduler decides, as with nodeName it would not: then a volume that waits for its
// first consumer would never be bound, and a full node would refuse the pod.
func onNode(name string) *corev1ac.AffinityApplyConfiguration {
	return corev1ac.Affinity().WithNodeAffinity(corev1ac.NodeAffinity().WithRequiredDuringSchedulingIgnoredDuringExecution(
		corev1ac.NodeSelector().WithNodeSelectorTerms(corev1ac.NodeSelectorTerm().WithMatchFields(
			corev1ac.NodeSelectorRequirement().WithKey("metadata.name").WithOperator(corev1.NodeSelectorOpIn).WithValues(name)))))
}
