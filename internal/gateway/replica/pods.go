package replica

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// CanAnswer reports whether a pod has an address of its own and its containers run. Before that nobody can answer, and asking
// would use up the time after which a pod counts as silent. Gateway pods do not use the address of their node, where others
// listen.
func CanAnswer(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return pod.DeletionTimestamp.IsZero() && pod.Status.PodIP != "" && pod.Status.PodIP != pod.Status.HostIP && !ended &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running == nil })
}

// IsReady reports whether a pod gets traffic.
func IsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// IsStale reports whether a pod says that it does not hear the API server.
func IsStale(answer Answer) bool { return answer.State == Answering && answer.Document.Stale() }
