package mover

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// Use is how pods use a volume.
type Use struct {
	// Claim is the UID of the claim.
	Claim types.UID
	// Node is where the pod of a Job has to be, because a pod there uses the volume. Empty: anywhere.
	Node string
	// Tolerations are those of the pod there.
	Tolerations []corev1.Toleration
	// Live reports whether a pod may write to it, that of a Restore among them.
	Live bool
	// Identity is who the pods run as.
	Identity Identity
}

// UseOf says how pods use a claim, and what keeps a Job from using it. Where a pod alone may use it, both are known.
func UseOf(claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) (Use, *health.Trouble) {
	u := Use{Claim: claim.UID}
	if mode := claim.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		return u, &health.Trouble{
			Reason: slipwayv1alpha1.ReasonInvalid,
			Message: fmt.Sprintf(
				"PersistentVolumeClaim %q is a block device, and only volumes with a file system are supported", claim.Name,
			),
		}
	}
	if claim.Status.Phase == corev1.ClaimLost {
		return u, &health.Trouble{
			Reason: slipwayv1alpha1.ReasonVolumeNotBound, Message: fmt.Sprintf("PersistentVolumeClaim %q has lost its volume", claim.Name),
		}
	}
	var exclusive *health.Trouble
	shared := slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(claim.Spec.AccessModes, corev1.ReadOnlyMany)
	for i := range pods {
		pod := &pods[i]
		volume, writes := VolumeOf(pod, claim.Name)
		if volume == "" || over(pod) || (isMover(pod) && !writes) {
			continue // who takes a copy is in nobody's way
		}
		if slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
			exclusive = &health.Trouble{
				Reason:  slipwayv1alpha1.ReasonVolumeInUse,
				Message: fmt.Sprintf("PersistentVolumeClaim %q is ReadWriteOncePod, and a pod uses it: no other pod may", claim.Name),
			}
		}
		if !shared && pod.Spec.NodeName != "" {
			u.Node, u.Tolerations = pod.Spec.NodeName, tolerationsOf(pod)
		}
		u.Live = u.Live || writes
		if !isMover(pod) {
			u.Identity = identityOf(pod, volume)
		}
	}
	return u, exclusive
}

// isMover tells a pod of ours from those of a workload.
func isMover(pod *corev1.Pod) bool {
	return pod.Labels[slipwayv1alpha1.LabelBackupRun] != "" || pod.Labels[slipwayv1alpha1.LabelRestore] != ""
}

// VolumeOf is the volume by which a pod has a claim, and whether it may write to it. It is empty where the pod does not have the
// claim. Only what the kubelet enforces makes a pod a reader: a claim or mounts that are read-only, as in the pods that take a
// snapshot.
func VolumeOf(pod *corev1.Pod, claim string) (volume string, writes bool) {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil || source.ClaimName != claim {
			continue
		}
		volume = pod.Spec.Volumes[i].Name
		if !source.ReadOnly && mountedForWriting(&pod.Spec, volume) {
			return volume, true
		}
	}
	return volume, false
}

// mountedForWriting reports whether a container of any kind may write to a volume. A block device has no read-only mode.
func mountedForWriting(pod *corev1.PodSpec, volume string) bool {
	writes := func(mounts []corev1.VolumeMount, devices []corev1.VolumeDevice) bool {
		return slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == volume && !m.ReadOnly }) ||
			slices.ContainsFunc(devices, func(d corev1.VolumeDevice) bool { return d.Name == volume })
	}
	ofContainer := func(c corev1.Container) bool { return writes(c.VolumeMounts, c.VolumeDevices) }
	return slices.ContainsFunc(pod.InitContainers, ofContainer) || slices.ContainsFunc(pod.Containers, ofContainer) ||
		slices.ContainsFunc(pod.EphemeralContainers, func(c corev1.EphemeralContainer) bool {
			return writes(c.VolumeMounts, c.VolumeDevices)
		})
}

// identityOf is who the container runs as that mounts a volume: as its spec says, or as the kubelet reports.
func identityOf(pod *corev1.Pod, volume string) Identity {
	var id Identity
	if security := pod.Spec.SecurityContext; security != nil {
		id.User, id.Group = value(security.RunAsUser), value(security.RunAsGroup)
		id.Groups = slices.Clone(security.SupplementalGroups)
		if security.FSGroup != nil {
			id.Groups = append(id.Groups, *security.FSGroup)
		}
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			continue
		}
		if security := container.SecurityContext; security != nil {
			id.User, id.Group = first(value(security.RunAsUser), id.User), first(value(security.RunAsGroup), id.Group)
		}
		if id.User == 0 {
			id.User, id.Group = reported(pod, container.Name, id.Group)
		}
		break
	}
	slices.Sort(id.Groups)
	id.Groups = slices.Compact(id.Groups)
	return id
}

// reported is the user that the kubelet says a container runs as.
func reported(pod *corev1.Pod, container string, group int64) (int64, int64) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.User != nil && status.User.Linux != nil {
			return status.User.Linux.UID, first(group, status.User.Linux.GID)
		}
	}
	return 0, group
}

// As is who to run as after what the user has said.
func (found Identity) As(m *slipwayv1alpha1.BackupMover) Identity {
	if m == nil {
		return found
	}
	if m.RunAs == slipwayv1alpha1.MoverRoot {
		return Identity{Root: true}
	}
	if m.User != nil {
		found.User, found.Group = *m.User, 0
	}
	if m.Group != nil {
		found.Group = *m.Group
	}
	return found
}

func value(pointer *int64) int64 {
	if pointer == nil {
		return 0
	}
	return *pointer
}

func first(numbers ...int64) int64 {
	for _, n := range numbers {
		if n != 0 {
			return n
		}
	}
	return 0
}
