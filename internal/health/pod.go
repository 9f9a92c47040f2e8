package health

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/redact"
	"github.com/slipway-dev/slipway/internal/text"
)

// terminalRestarts is how many restarts make a failing container's verdict terminal. The
// kubelet restarts a container at once, then after 10 s and after 20 s. So the third
// restart comes about half a minute after the first exit.
const terminalRestarts = 3

// Pod evaluates a pod by the first problem in this order: scheduling, the node, init
// containers, containers, probes. The events of the pod explain what its status does not. A
// container that has never passed its probe counts as starting.
func Pod(pod *corev1.Pod, events ...corev1.Event) Verdict {
	return evaluatePod(pod, reported{events: events})
}

// LatePod evaluates a pod that had enough time to start. A container that has never passed its
// probe counts as failed.
func LatePod(pod *corev1.Pod, events ...corev1.Event) Verdict {
	return evaluatePod(pod, reported{events: events, late: true})
}

// reported is the information besides the pod itself.
type reported struct {
	// events are events of the pod.
	events []corev1.Event
	// late means that the containers had enough time to start.
	late bool
}

func evaluatePod(pod *corev1.Pod, reported reported) Verdict {
	if !pod.DeletionTimestamp.IsZero() {
		return Verdict{State: Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: fmt.Sprintf("pod %q is being deleted", pod.Name)}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return failedPod(pod)
	}
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
		return Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonUnschedulable, Message: fmt.Sprintf("pod %q: %s", pod.Name, unschedulable(pod, c.Message))}
	}
	if verdict := gated(pod); verdict != nil {
		return *verdict
	}
	if verdict := sandbox(pod, reported.events); verdict != nil {
		return *verdict
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if verdict := container(pod, status, reported); verdict != nil {
			return *verdict
		}
	}
	if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return Verdict{State: Healthy}
	}
	if reported.late {
		for _, status := range pod.Status.ContainerStatuses {
			if verdict := failingProbe(pod, status, reported.events); verdict != nil {
				return *verdict
			}
		}
	}
	return Verdict{State: Progressing, Reason: ReasonNotReady, Message: waitingText(pod, reported.events)}
}

func failedPod(pod *corev1.Pod) Verdict {
	// The kubelet's reasons are free text, such as OutOfexample.com/gpu, so they cannot be
	// condition reasons.
	verdict := Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonPodFailed, Message: fmt.Sprintf("pod %q failed", pod.Name)}
	if pod.Status.Reason == slipwayv1alpha1.ReasonEvicted {
		verdict.Reason = slipwayv1alpha1.ReasonEvicted
	} else if pod.Status.Reason != "" {
		verdict.Message += ": " + pod.Status.Reason
	}
	if pod.Status.Message != "" {
		verdict.Message += ": " + pod.Status.Message
	}
	return verdict
}

// container returns nil if the container has no problem.
func container(pod *corev1.Pod, status corev1.ContainerStatus, reported reported) *Verdict {
	where := fmt.Sprintf("pod %q container %q", pod.Name, status.Name)
	if isInit(pod, status.Name) {
		where = fmt.Sprintf("pod %q init container %q", pod.Name, status.Name)
	}
	if waiting := status.State.Waiting; waiting != nil {
		if verdict := waitingContainer(pod, where, status); verdict != nil {
			return verdict
		}
	}
	if wasReady(pod, status) {
		return failingProbe(pod, status, reported.events)
	}
	return endedContainer(pod, where, status, reported.events)
}

// wasReady reports whether a running container was ready in its current run. Then the end
// of its last run does not matter any more. It was ready if the pod's readiness changed
// after the container was started.
func wasReady(pod *corev1.Pod, status corev1.ContainerStatus) bool {
	ready := podCondition(pod, corev1.PodReady)
	return status.State.Running != nil && ready != nil && ready.LastTransitionTime.After(status.State.Running.StartedAt.Time)
}

func waitingContainer(pod *corev1.Pod, where string, status corev1.ContainerStatus) *Verdict {
	waiting := status.State.Waiting
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", reasonRegistryUnavailable:
		return imagePull(pod, where, status, waiting)
	case "ErrImageNeverPull", "ErrImageInspect", "ImageInspectError", reasonSignature:
		return unusable(where, status.Image, waiting.Reason)
	case "InvalidImageName":
		return &Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonInvalidImageName, Terminal: true,
			Message: fmt.Sprintf("%s: the image name %q cannot be parsed", where, status.Image),
		}
	case "CreateContainerConfigError":
		return &Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonContainerConfigError, Message: fmt.Sprintf("%s: %s", where, configError(waiting.Message))}
	case "CreateContainerError", "RunContainerError", "PostStartHookError", "StartError":
		return &Verdict{
			State: Failed, Reason: slipwayv1alpha1.ReasonContainerStartError, Terminal: status.RestartCount >= terminalRestarts,
			Message: fmt.Sprintf("%s cannot be started: %s", where, startError(pod, status, waiting.Message)),
		}
	default:
		return nil
	}
}

// imagePull distinguishes a missing image from a refused one by the registry's answer,
// which the kubelet quotes. ErrImagePull and ImagePullBackOff alternate, and give the same
// reason and message. Only ImagePullBackOff is terminal, because then the kubelet has given
// up for some time.
func imagePull(pod *corev1.Pod, where string, status corev1.ContainerStatus, waiting *corev1.ContainerStateWaiting) *Verdict {
	image := status.Image
	verdict := &Verdict{State: Failed, Terminal: waiting.Reason == "ImagePullBackOff"}
	answer := pullUnanswered
	if waiting.Reason != reasonRegistryUnavailable {
		if before := beforeBackOff(waiting.Message); before == reasonSignature {
			return unusable(where, image, before)
		}
		answer = readPull(waiting.Message)
	}
	switch answer {
	case pullDenied:
		verdict.Reason = slipwayv1alpha1.ReasonImagePullDenied
		verdict.Message = fmt.Sprintf("%s: ImagePullBackOff: the registry denies image %q: check %s", where, image, pullSecretsField(pod))
	case pullMissing:
		verdict.Reason = slipwayv1alpha1.ReasonImageNotFound
		verdict.Message = fmt.Sprintf("%s: ImagePullBackOff: image %q does not exist: check %s", where, image, imageField(pod, status.Name))
	case pullUnanswered:
		verdict.Reason = slipwayv1alpha1.ReasonImagePullBackOff
		// The registry may be unavailable for a moment.
		verdict.Terminal = false
		verdict.Message = fmt.Sprintf("%s: ImagePullBackOff: image %q cannot be pulled: the registry does not answer as it should", where, image)
	}
	return verdict
}

func unusable(where, image, reason string) *Verdict {
	return &Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonImagePullBackOff, Message: fmt.Sprintf("%s: image %q cannot be used: %s", where, image, reason)}
}

// endedContainer reports a container that ended, with an error or though it is to go on running,
// and has not been ready since. It may be waiting, running again or just ended: in a crash loop
// these states alternate.
func endedContainer(pod *corev1.Pod, where string, status corev1.ContainerStatus, events []corev1.Event) *Verdict {
	ended := lastEnd(status)
	waits := status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff"
	switch {
	case ended == nil && waits:
		return &Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonCrashLoopBackOff, Message: where + " ends again and again"}
	case ended == nil, status.Ready:
		return nil
	case ended.ExitCode == 0 && !waits && !startsAgain(pod, status):
		return nil
	}
	if verdict := killedByProbe(pod, status, ended, events); verdict != nil {
		return verdict
	}
	verdict := &Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonCrashLoopBackOff, Terminal: status.RestartCount >= terminalRestarts}
	switch ended.Reason {
	case "OOMKilled":
		verdict.Reason = slipwayv1alpha1.ReasonOOMKilled
		verdict.Message = fmt.Sprintf("%s ended with exit code %d: %s", where, ended.ExitCode, outOfMemory(pod, status))
		return verdict
	case "StartError", "ContainerCannotRun":
		verdict.Reason = slipwayv1alpha1.ReasonContainerStartError
		verdict.Message = fmt.Sprintf("%s cannot be started: %s", where, startError(pod, status, ended.Message))
		return verdict
	}
	verdict.Message = fmt.Sprintf("%s ended with exit code %d", where, ended.ExitCode)
	if message := lastLine(ended.Message); message != "" {
		verdict.Message += ": " + message
	}
	return verdict
}

// lastEnd returns how the last run of a container that has ended did so, or nil.
func lastEnd(status corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if ended := status.State.Terminated; ended != nil {
		return ended
	}
	return status.LastTerminationState.Terminated
}

// startsAgain reports whether a container is started again after it ended without an error: it is
// of a Deployment, or it has been. An init container, or one of a Job, has done its work.
func startsAgain(pod *corev1.Pod, status corev1.ContainerStatus) bool {
	if isInit(pod, status.Name) || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	last := status.LastTerminationState.Terminated
	return pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || owner != nil && owner.Kind == "ReplicaSet" || last != nil && last.ExitCode == 0
}

// maxTermination bounds how much of a container's last output is quoted.
const maxTermination = 256

// These match the time that common loggers write: at the start of a line, in a JSON field,
// or in a logfmt field. Some loggers add colors.
var (
	paint       = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)
	leadingTime = regexp.MustCompile(`^\[?(\d{4}[-/]\d{2}[-/]\d{2}[T ]\d{2}:\d{2}:\d{2}\S*|[IWEF]\d{4} \d{2}:\d{2}:\d{2}\.\d+ +\d+|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?|[AP]M)\]?)(\s+|$)`)
	timeField   = regexp.MustCompile(`"(time|ts|timestamp|@timestamp)" ?: ?("[^"]*"|[0-9.eE+]+) ?,? ?`)
	timeSetting = regexp.MustCompile(`^(time|ts|timestamp)=("[^"]*"|\S+)(\s+|$)`)
)

// lastLine returns the last line of a termination message, because it usually has the
// cause: the kubelet fills the message with the end of the log. The time of the line is
// removed, because it differs at every crash.
func lastLine(message string) string { return text.Cut(wholeLastLine(message), maxTermination) }

func wholeLastLine(message string) string {
	message = redact.Clean(message) // before anything is left out: the line before may say that it is a secret
	lines := strings.Split(strings.TrimSpace(paint.ReplaceAllString(message, "")), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	for _, when := range []*regexp.Regexp{leadingTime, timeField, timeSetting} {
		last = when.ReplaceAllString(last, "")
	}
	return last
}

func waitingText(pod *corev1.Pod, events []corev1.Event) string {
	if c := podCondition(pod, corev1.PodInitialized); c != nil && c.Status == corev1.ConditionFalse {
		return fmt.Sprintf("pod %q: its init containers have not finished", pod.Name)
	}
	for _, status := range pod.Status.ContainerStatuses {
		if since, fails := failsProbe(pod, status); fails {
			probe := probeOf(pod, status)
			return fmt.Sprintf("pod %q container %q runs and is not ready: its %s probe has not succeeded%s",
				pod.Name, status.Name, probe.kind, probe.says(since, events, ": ", ""))
		}
	}
	return fmt.Sprintf("pod %q is being started", pod.Name)
}

func podCondition(pod *corev1.Pod, conditionType corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == conditionType {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
}
