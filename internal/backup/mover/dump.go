package mover

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/health"
)

// The containers of a dump, beside those of the steps. The first one copies slipway-backup to a folder. The second one is of
// the user's image, runs the user's command with it, and is a sidecar: it is there while the step snapshot keeps the output.
const (
	ContainerInstall = "install"
	ContainerDump    = "dump"
)

const (
	// programFolder holds the program that runs the command, and socketFolder the socket to the step that keeps the output.
	// They are all that the user's container shares with others. No Secret of Slipway is in there.
	programFolder = "/slipway/program"
	socketFolder  = "/slipway/socket"

	program = programFolder + "/slipway-backup"
	socket  = socketFolder + "/dump"
)

// DumpContainer is the container that runs the command of a dump.
type DumpContainer struct {
	// Name is that of the file that the output is kept as.
	Name string
	// Image is the user's, and PullPolicy and PullSecrets are how it is pulled. Empty: as by default.
	Image       string
	PullPolicy  corev1.PullPolicy
	PullSecrets []corev1.LocalObjectReference
	// Command is the command.
	Command []string
	// Env and EnvFrom are those of the source's container, and MoreEnv and MoreEnvFrom what wins over them.
	Env         []corev1.EnvVar
	EnvFrom     []corev1.EnvFromSource
	MoreEnv     []*corev1ac.EnvVarApplyConfiguration
	MoreEnvFrom []*corev1ac.EnvFromSourceApplyConfiguration
	// Resources are those of the container. Nil: the defaults.
	Resources *slipwayv1alpha1.ResourceRequirements
}

// config is what the step snapshot has to know of it.
func (d *DumpContainer) config() *Dump {
	if d == nil {
		return nil
	}
	return &Dump{Socket: socket, Name: d.Name}
}

// addTo adds the containers and volumes of a dump to a pod. They come before the steps: the command waits until it is asked to
// run.
func (d *DumpContainer) addTo(pod *corev1ac.PodSpecApplyConfiguration, image string) error {
	container, err := d.container()
	if err != nil {
		return err
	}
	install := corev1ac.Container().
		WithName(ContainerInstall).
		WithImage(image).
		WithImagePullPolicy(corev1.PullIfNotPresent).
		WithArgs("install", program).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
			}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")})).
		WithSecurityContext(children.ContainerSecurity().WithReadOnlyRootFilesystem(true)).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("program").WithMountPath(programFolder))
	empty := func(name, size string) *corev1ac.VolumeApplyConfiguration {
		return corev1ac.Volume().WithName(name).WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse(size)))
	}
	pod.WithInitContainers(install, container).WithVolumes(empty("program", "256Mi"), empty("socket", "1Mi"))
	for _, secret := range d.PullSecrets {
		pod.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(secret.Name))
	}
	return nil
}

func (d *DumpContainer) container() (*corev1ac.ContainerApplyConfiguration, error) {
	env, from, err := d.environment()
	if err != nil {
		return nil, err
	}
	resources := children.Resources(d.Resources)
	if resources == nil {
		resources = corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
			})
	}
	container := corev1ac.Container().
		WithName(ContainerDump).
		WithImage(d.Image).
		WithRestartPolicy(corev1.ContainerRestartPolicyAlways). // a sidecar: the next container starts when this one has
		WithCommand(append([]string{program, "dump", "--socket", socket, "--"}, d.Command...)...).
		WithEnv(env...).
		WithEnvFrom(from...).
		WithResources(resources).
		WithSecurityContext(children.ContainerSecurity()).
		WithVolumeMounts(
			corev1ac.VolumeMount().WithName("program").WithMountPath(programFolder).WithReadOnly(true),
			corev1ac.VolumeMount().WithName("socket").WithMountPath(socketFolder),
		)
	if d.PullPolicy != "" {
		container.WithImagePullPolicy(d.PullPolicy)
	}
	return container, nil
}

// environment is that of the source's container, but for what is replaced. What is replaced comes last, so the variables are
// put in order again for those that refer to it.
func (d *DumpContainer) environment() (
	env []*corev1ac.EnvVarApplyConfiguration, from []*corev1ac.EnvFromSourceApplyConfiguration, err error,
) {
	var own []corev1.EnvVar
	for _, variable := range d.Env {
		variable = *variable.DeepCopy()
		replaced := slices.ContainsFunc(d.MoreEnv, func(e *corev1ac.EnvVarApplyConfiguration) bool { return *e.Name == variable.Name })
		own = slices.DeleteFunc(own, func(e corev1.EnvVar) bool { return e.Name == variable.Name }) // the last one of a name counts
		if replaced {
			continue
		}
		if source := variable.ValueFrom; source != nil && source.ResourceFieldRef != nil {
			source.ResourceFieldRef.ContainerName = "" // of its pod. There are other containers in this one
		}
		own = append(own, variable)
	}
	if env, err = applied[corev1ac.EnvVarApplyConfiguration](own); err != nil {
		return nil, nil, err
	}
	if from, err = applied[corev1ac.EnvFromSourceApplyConfiguration](d.EnvFrom); err != nil {
		return nil, nil, err
	}
	return children.InOrder(append(env, d.MoreEnv...)), append(from, d.MoreEnvFrom...), nil
}

// applied returns objects as apply configurations, which have the same JSON.
func applied[A, T any](objects []T) ([]*A, error) {
	raw, err := json.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("copy the environment: %w", err)
	}
	var list []*A
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("copy the environment: %w", err)
	}
	return list, nil
}

// socketMount is how the step that keeps the output gets at the socket.
func socketMount() *corev1ac.VolumeMountApplyConfiguration {
	return corev1ac.VolumeMount().WithName("socket").WithMountPath(path.Dir(socket))
}

// IdentityIn is who a container runs as: as the spec of its pod says, or as the kubelet reports. It reports whether that is known.
func IdentityIn(pod *corev1.Pod, container string) (id Identity, known bool) {
	if security := pod.Spec.SecurityContext; security != nil {
		id.User, id.Group = value(security.RunAsUser), value(security.RunAsGroup)
		id.Groups = slices.Clone(security.SupplementalGroups)
	}
	for i := range pod.Spec.Containers {
		if security := pod.Spec.Containers[i].SecurityContext; security != nil && pod.Spec.Containers[i].Name == container {
			id.User, id.Group = first(value(security.RunAsUser), id.User), first(value(security.RunAsGroup), id.Group)
		}
	}
	if id.User == 0 {
		id.User, id.Group = reported(pod, container, id.Group)
	}
	slices.Sort(id.Groups)
	id.Groups = slices.Compact(id.Groups)
	return id, id.User != 0
}

// IdentityOfClaim is who the pods run as that use a claim. It is empty where there are none.
func IdentityOfClaim(claim string, pods []corev1.Pod) Identity {
	for i := range pods {
		if volume, _ := VolumeOf(&pods[i], claim); volume != "" && !isMover(&pods[i]) && !over(&pods[i]) {
			return identityOf(&pods[i], volume)
		}
	}
	return Identity{}
}

// IdentityOfPods is who a container of one of these pods runs as. It is empty where nothing tells.
func IdentityOfPods(container string, pods []corev1.Pod) Identity {
	for i := range pods {
		if id, known := IdentityIn(&pods[i], container); known && !over(&pods[i]) {
			return id
		}
	}
	return Identity{}
}

func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ofDump says more of a dump that failed: that its container was killed for its memory, which the step that kept the output
// cannot know.
func (o *Observation) ofDump(dump corev1.ContainerStatus) {
	if o.Trouble == nil || (o.Trouble.Reason != slipwayv1alpha1.ReasonDumpFailed && o.Trouble.Reason != slipwayv1alpha1.ReasonPodLost) {
		return
	}
	for _, state := range []corev1.ContainerState{dump.State, dump.LastTerminationState} {
		if state.Terminated != nil && state.Terminated.Reason == slipwayv1alpha1.ReasonOOMKilled {
			o.Trouble = &health.Trouble{
				Reason:  slipwayv1alpha1.ReasonOOMKilled,
				Message: "the command of spec.dump used more memory than the limit of its container (spec.dump.resources)",
			}
			return
		}
	}
}
