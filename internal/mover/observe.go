package mover

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// State is what a Job has come to.
type State string

// The states.
const (
	// Absent is a Job that is not there.
	Absent State = "Absent"
	// Starting waits for its pod to start.
	Starting State = "Starting"
	// Working runs a step.
	Working State = "Working"
	// Succeeded has a good result of every step.
	Succeeded State = "Succeeded"
	// Failed has ended otherwise.
	Failed State = "Failed"
)

// Observation is what there is to say of a Job.
type Observation struct {
	State State
	// Step is the one that runs, or that failed.
	Step Step
	// Results are those of the steps that have ended and said how.
	Results map[Step]*Result
	// Trouble is why the Job failed, or what keeps its pod from starting. Nil: nothing.
	Trouble *health.Trouble
	// Since is when the Job was made.
	Since time.Time
	// Pod is the name of the pod that runs, for its log.
	Pod string
	// StepSince is when the step began that runs.
	StepSince time.Time
	// Took is how long each step took that has ended well.
	Took map[Step]time.Duration
}

// Observe says what a Job has come to. Only what every step has said itself is a success: an exit code without a result is
// none, and a Job that is complete without the pods to prove it is none either.
func Observe(job *batchv1.Job, pods []corev1.Pod, steps []Step) Observation {
	if job == nil || job.UID == "" {
		return Observation{State: Absent}
	}
	o := Observation{State: Starting, Results: map[Step]*Result{}, Took: map[Step]time.Duration{}, Since: job.CreationTimestamp.Time, Step: steps[0]}
	pod := newest(job, pods)
	if pod != nil {
		o.ofPod(pod, steps)
	}
	verdict := health.Job(job)
	switch {
	case o.State == Succeeded, o.State == Failed && o.Trouble.Reason != slipwayv1alpha1.ReasonPodLost:
		// The steps know better than the Job why.
		return o
	case verdict.State == health.Failed && verdict.Reason == batchv1.JobReasonDeadlineExceeded:
		return o.fail(slipwayv1alpha1.ReasonDeadlineExceeded, "it took longer than its deadline")
	case o.State == Failed:
		return o
	case verdict.Terminal, !job.DeletionTimestamp.IsZero():
		return o.fail(slipwayv1alpha1.ReasonPodLost, "the pod has gone without a result")
	case pod == nil && verdict.State == health.Failed:
		return o.fail(slipwayv1alpha1.ReasonPodLost, "the pod has gone without a result")
	default:
		return o
	}
}

// newest is the last pod of a Job that was made. Labels alone, which anybody may give to a pod, make none.
func newest(job *batchv1.Job, pods []corev1.Pod) *corev1.Pod {
	var found *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, job) || pod.Labels[batchv1.ControllerUidLabel] != string(job.UID) {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&pod.CreationTimestamp) {
			found = pod
		}
	}
	return found
}

// ofPod reads what the containers say.
func (o *Observation) ofPod(pod *corev1.Pod, steps []Step) {
	o.Pod = pod.Name
	statuses := map[string]corev1.ContainerStatus{}
	for _, status := range pod.Status.InitContainerStatuses {
		statuses[status.Name] = status
	}
	for _, status := range pod.Status.ContainerStatuses {
		statuses[status.Name] = status
	}
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	for _, step := range steps {
		o.Step = step
		state := statuses[string(step)].State
		switch {
		case state.Terminated != nil:
			if !o.ofStep(step, state.Terminated) {
				o.ofDump(statuses[ContainerDump])
				return
			}
			o.State = Working // the next step begins
		case ended:
			*o = o.fail(slipwayv1alpha1.ReasonPodLost, fmt.Sprintf("the pod ended before the step %q did", step))
			o.evicted(pod)
			return
		case state.Running != nil:
			o.State = Working
			o.StepSince = state.Running.StartedAt.Time
			return
		default:
			if o.State == Starting {
				o.waiting(pod)
			}
			return
		}
	}
	o.State = Succeeded
}

// ofStep reads how a step ended, and tells whether it was well.
func (o *Observation) ofStep(step Step, ended *corev1.ContainerStateTerminated) bool {
	if step == StepCommand {
		return o.ofCommand(ended)
	}
	result, err := ParseResult(ended.Message)
	switch {
	case err == nil && result.Command == string(step) && result.OK && ended.ExitCode == 0:
		o.Results[step] = result
		o.Took[step] = max(0, ended.FinishedAt.Sub(ended.StartedAt.Time))
		return true
	case err == nil && !result.OK:
		o.Results[step] = result
		*o = o.fail(Reason(result.Kind), result.Message)
	case ended.Reason == "OOMKilled":
		*o = o.fail(slipwayv1alpha1.ReasonOOMKilled, fmt.Sprintf("the step %q used more memory than its limit", step))
	default:
		// Killed before it could say anything, or it says something else than its exit code.
		*o = o.fail(slipwayv1alpha1.ReasonPodLost, fmt.Sprintf("the step %q ended with exit code %d and without a result", step, ended.ExitCode))
	}
	return false
}

// evicted says why a pod was ended from outside.
func (o *Observation) evicted(pod *corev1.Pod) {
	if pod.Status.Reason == slipwayv1alpha1.ReasonEvicted {
		*o = o.fail(slipwayv1alpha1.ReasonEvicted, "the node threw the pod out")
	}
}

// waiting says what keeps a pod from starting.
func (o *Observation) waiting(pod *corev1.Pod) {
	if verdict := health.Pod(pod); verdict.State == health.Failed || verdict.Reason == slipwayv1alpha1.ReasonUnschedulable {
		o.Trouble = namesImage(pod, verdict.Trouble())
	}
}

// namesImage has a message about an image of a pod name what asks for it: the fields that it names are of a WebApp. What the
// container is called stands at the beginning: after that comes what others wrote.
func namesImage(pod *corev1.Pod, trouble *health.Trouble) *health.Trouble {
	const image, secrets = "check spec.image", "check spec.imagePullSecrets"
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonImageNotFound:
		if before, found := strings.CutSuffix(trouble.Message, image); found {
			return &health.Trouble{Reason: trouble.Reason, Message: before + "check " + asksForImage(pod, trouble.Message)}
		}
	case slipwayv1alpha1.ReasonImagePullDenied:
		if before, found := strings.CutSuffix(trouble.Message, secrets); found {
			return &health.Trouble{Reason: trouble.Reason, Message: before + "check spec.mover.imagePullSecrets"}
		}
	}
	return trouble
}

// asksForImage is the field, or the option of the operator, with the image of the container that a message begins with.
func asksForImage(pod *corev1.Pod, message string) string {
	for container, field := range map[string]string{ContainerDump: "spec.dump.image", string(StepCommand): "spec.verify.drill.image"} {
		for _, sort := range []string{"container", "init container"} {
			if strings.HasPrefix(message, fmt.Sprintf("pod %q %s %q", pod.Name, sort, container)) {
				return field
			}
		}
	}
	return "--backup-image of the operator"
}

func (o *Observation) fail(reason, message string) Observation {
	failed := *o
	failed.State = Failed
	failed.Trouble = &health.Trouble{Reason: reason, Message: message}
	return failed
}
