package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// These are the names of the volumes that Slipway gives to a WebApp's pods.
const (
	// filesVolume is before the index in spec.files.
	filesVolume   = "files-"
	storageVolume = "data"
)

// isOwnContainer reports whether Slipway added the container, so that a field of Slipway's
// spec configures it. Other containers were injected by other programs.
func isOwnContainer(pod *corev1.Pod, name string) bool {
	switch {
	case isWebApp(pod):
		return name == "app"
	case pod.Labels[slipwayv1alpha1.LabelAPIGateway] != "":
		return name == "gateway"
	default:
		return false
	}
}

func isWebApp(pod *corev1.Pod) bool { return pod.Labels[slipwayv1alpha1.LabelWebApp] != "" }

// specOf returns the spec of a container, or nil.
func specOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
		if i >= 0 {
			return &containers[i]
		}
	}
	return nil
}

// outOfMemory says which memory limit a container has exceeded. A container without a limit
// is killed when its node has no memory left.
func outOfMemory(pod *corev1.Pod, status corev1.ContainerStatus) string {
	const field = "spec.resources.limits.memory"
	limit, limited := memoryLimit(pod, status)
	switch own := isOwnContainer(pod, status.Name); {
	case limited && own:
		return fmt.Sprintf("it used more memory than its limit of %s (%s)", limit, field)
	case limited:
		return fmt.Sprintf("it used more memory than its limit of %s", limit)
	case own:
		return fmt.Sprintf("its node ran out of memory, and it has no limit (%s)", field)
	default:
		return "it used more memory than it may"
	}
}

// memoryLimit returns the limit that the kubelet reports. If it reports none, it returns
// the limit of the spec.
func memoryLimit(pod *corev1.Pod, status corev1.ContainerStatus) (string, bool) {
	if status.Resources != nil {
		if limit, ok := status.Resources.Limits[corev1.ResourceMemory]; ok {
			return limit.String(), true
		}
	}
	if spec := specOf(pod, status.Name); spec != nil {
		if limit, ok := spec.Resources.Limits[corev1.ResourceMemory]; ok {
			return limit.String(), true
		}
	}
	return "", false
}

// unschedulable explains the scheduler's message. It first names the requests that no node
// can satisfy. It leaves out what the scheduler says about preemption.
func unschedulable(pod *corev1.Pod, message string) string {
	message, _, _ = strings.Cut(message, " preemption: ")
	message = strings.TrimSuffix(strings.TrimSuffix(message, ","), " no new claims to deallocate")
	reasons := noNode(message)
	var lacks []string
	for _, container := range pod.Spec.Containers {
		for name, asked := range container.Resources.Requests {
			if slices.Contains(reasons, "Insufficient "+string(name)) {
				field := inField(requestField(pod, container.Name, string(name)))
				lacks = append(lacks, fmt.Sprintf("%s %s%s", name, asked.String(), field))
			}
		}
	}
	switch {
	case len(lacks) > 0:
		slices.Sort(lacks)
		return fmt.Sprintf("no node has what it asks for, %s: %s", strings.Join(lacks, ", "), message)
	case isMover(pod) && slices.Contains(reasons, "pod has unbound immediate PersistentVolumeClaims"):
		return fmt.Sprintf("it waits for PersistentVolumeClaim %s: %s", strings.Join(claimsOf(pod), ", "), message)
	default:
		return message
	}
}

// noNodeOf matches the scheduler's message: how many nodes there are, and each reason with the number of nodes it rules out.
// A reason that rules out all of them has no number. After the full stop comes what else was tried.
var (
	noNodeOf = regexp.MustCompile(`^0/\d+ nodes are available: (.*?)(?:\.(?: .*)?)?$`)
	ofNodes  = regexp.MustCompile(`^\d+ `)
)

// noNode returns the reasons in the scheduler's message, or nothing for another message. No name that a reason may hold, of a
// resource, a taint or a claim, has a space, so none can pass for a reason.
func noNode(message string) []string {
	m := noNodeOf.FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	reasons := strings.Split(m[1], ", ")
	for i := range reasons {
		reasons[i] = ofNodes.ReplaceAllString(reasons[i], "")
	}
	return reasons
}

// claimsOf are the claims that a pod uses, in quotes.
func claimsOf(pod *corev1.Pod) []string {
	var claims []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			claims = append(claims, fmt.Sprintf("%q", v.PersistentVolumeClaim.ClaimName))
		case v.Ephemeral != nil:
			claims = append(claims, fmt.Sprintf("%q", pod.Name+"-"+v.Name))
		}
	}
	return claims
}

// gated returns nil unless a pod is kept from the scheduler. Who does that takes the gates away when it likes.
func gated(pod *corev1.Pod) *Verdict {
	c := podCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != corev1.PodReasonSchedulingGated || len(pod.Spec.SchedulingGates) == 0 {
		return nil
	}
	var names []string
	for _, gate := range pod.Spec.SchedulingGates {
		names = append(names, fmt.Sprintf("%q", gate.Name))
	}
	return &Verdict{
		State: Progressing, Reason: slipwayv1alpha1.ReasonUnschedulable,
		Message: fmt.Sprintf("pod %q is kept from the scheduler by its schedulingGates %s, which whoever has set them takes away", pod.Name, strings.Join(names, ", ")),
	}
}
