package health

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// Unexplained reports whether the status of a pod does not say why the pod is not ready,
// although its events may. since is the time since which that is so. For a moment this
// holds for every starting pod.
func Unexplained(pod *corev1.Pod) (since time.Time, unexplained bool) {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if !pod.DeletionTimestamp.IsZero() || ended {
		return time.Time{}, false
	}
	if since, waits := waitsForSandbox(pod); waits {
		return since, true
	}
	for _, status := range pod.Status.ContainerStatuses {
		if since, killed := wasKilled(pod, status); killed {
			return since, true
		}
		if since, fails := failsProbe(pod, status); fails {
			return since, true
		}
	}
	return time.Time{}, false
}

// wasKilled reports whether the kubelet may have ended the last run of a container, and since when
// that run went on. It is the same while the container waits for its next start and after that,
// until it is ready: what is said of it must be so too.
func wasKilled(pod *corev1.Pod, status corev1.ContainerStatus) (time.Time, bool) {
	ended := lastEnd(status)
	if ended == nil || !endedBySignal(ended) || status.Ready || isInit(pod, status.Name) || wasReady(pod, status) {
		return time.Time{}, false
	}
	return ended.StartedAt.Time, true
}

// FailsProbe reports whether a container was ready in its current run and no longer is.
// Unlike at the start, that does not pass by itself.
func FailsProbe(pod *corev1.Pod) bool {
	if !pod.DeletionTimestamp.IsZero() {
		return false
	}
	for _, status := range pod.Status.ContainerStatuses {
		if _, fails := failsProbe(pod, status); fails && wasReady(pod, status) {
			return true
		}
	}
	return false
}

// waitsForSandbox reports whether a pod is assigned to a node that has not created the
// pod's sandbox yet, and since when.
func waitsForSandbox(pod *corev1.Pod) (time.Time, bool) {
	scheduled := podCondition(pod, corev1.PodScheduled)
	if pod.Status.Phase == corev1.PodRunning || scheduled == nil || scheduled.Status != corev1.ConditionTrue {
		return time.Time{}, false
	}
	if c := podCondition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
		return time.Time{}, false
	}
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting == nil || waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
			return time.Time{}, false
		}
	}
	return scheduled.LastTransitionTime.Time, true
}

// failsProbe reports whether a container runs and is not ready, and since when. That is the
// time when it became unready, or when it was started.
func failsProbe(pod *corev1.Pod, status corev1.ContainerStatus) (time.Time, bool) {
	ready := podCondition(pod, corev1.PodReady)
	if pod.Status.Phase == corev1.PodSucceeded || status.State.Running == nil || status.Ready || ready != nil && ready.Status == corev1.ConditionTrue {
		return time.Time{}, false
	}
	if wasReady(pod, status) {
		return ready.LastTransitionTime.Time, true
	}
	return status.State.Running.StartedAt.Time, true
}

// last returns when an event was last seen, in whole seconds.
func last(event *corev1.Event) time.Time {
	at := event.LastTimestamp.Time
	if event.Series != nil && event.Series.LastObservedTime.After(at) {
		at = event.Series.LastObservedTime.Time
	}
	for _, other := range []time.Time{event.FirstTimestamp.Time, event.EventTime.Time} {
		if at.IsZero() {
			at = other
		}
	}
	return at.Truncate(time.Second)
}

// latest returns the last matching event that was seen at since or later, or nil.
func latest(events []corev1.Event, since time.Time, matches func(*corev1.Event) bool) *corev1.Event {
	var found *corev1.Event
	for i := range events {
		event := &events[i]
		if last(event).Before(since.Truncate(time.Second)) || !matches(event) {
			continue
		}
		if found == nil || last(event).After(last(found)) {
			found = event
		}
	}
	return found
}

// sandbox reports why the sandbox of a pod cannot be created. Only events tell that.
func sandbox(pod *corev1.Pod, events []corev1.Event) *Verdict {
	since, waits := waitsForSandbox(pod)
	if !waits {
		return nil
	}
	event := latest(events, since, func(e *corev1.Event) bool {
		return e.Reason == slipwayv1alpha1.ReasonSandboxFailed || e.Reason == slipwayv1alpha1.ReasonMountFailed || e.Reason == "FailedAttachVolume"
	})
	switch {
	case event == nil:
		return nil
	case event.Reason == slipwayv1alpha1.ReasonSandboxFailed:
		return &Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonSandboxFailed,
			Message: fmt.Sprintf("pod %q cannot be set up on its node: %s", pod.Name, nodeWords(event.Message)),
		}
	default:
		return &Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonMountFailed,
			Message: fmt.Sprintf("pod %q has a volume that cannot be mounted: %s", pod.Name, nodeWords(event.Message)),
		}
	}
}

// combined is the kubelet's prefix for several similar events. callError is gRPC's prefix
// before an error.
var (
	combined  = regexp.MustCompile(`^\(combined from similar events\): `)
	callError = regexp.MustCompile(`rpc error: code = \S+ desc = `)
	spaces    = regexp.MustCompile(`\s+`)
)

// nodeWords returns a message of the kubelet without the parts that differ at every
// attempt: identifiers, addresses and the call chain.
func nodeWords(message string) string {
	message = redact.Clean(message) // as long as it has its lines
	message = combined.ReplaceAllString(message, "")
	message = callError.ReplaceAllString(message, "")
	message = strings.ReplaceAll(message, "Failed to create pod sandbox: ", "")
	message = strings.ReplaceAll(containerID.ReplaceAllString(message, ""), ` ""`, "")
	return text.Cut(strings.TrimSpace(spaces.ReplaceAllString(withoutAddresses(message), " ")), maxTermination)
}
