package mover

import (
	"fmt"
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
	// Trouble is why the Job failed, or what keeps its pod, or its next step, from starting. Nil: nothing.
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
// none, and a Job that is complete without the pods to prove it is none either. Events are those of the newest pod: they explain
// what its status does not.
func Observe(job *batchv1.Job, pods []corev1.Pod, steps []Step, events ...corev1.Event) Observation {
	if job == nil || job.UID == "" {
		return Observation{State: Absent}
	}
	o := Observation{
		State: Starting, Results: map[Step]*Result{}, Took: map[Step]time.Duration{}, Since: job.CreationTimestamp.Time, Step: steps[0],
	}
	pod := Newest(job, pods)
	if pod != nil {
		o.ofPod(pod, steps, events)
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
	case pod == nil && verdict.Reason == health.ReasonJobSuspended:
		// A Job of ours never asks for that: somebody else holds it, as those do that give out places in a cluster.
		o.Trouble = &health.Trouble{
			Reason:  slipwayv1alpha1.ReasonPodsNotCreated,
			Message: fmt.Sprintf("Job %q is suspended (its spec.suspend), which whoever has set that takes away", job.Name),
		}
		return o
	default:
		return o
	}
}

// Late is what there is to say of a pod that has not started for too long, or nil. left is how long it may still take; zero: it
// has started.
func (o Observation) Late(now time.Time) (trouble *health.Trouble, left time.Duration) {
	since := o.Since
	switch {
	case o.State != Starting && o.State != Absent:
		return nil, 0
	case since.IsZero():
		since = now // the Job is being made
	}
	if left = since.Add(PendingLimit).Sub(now); left > 0 {
		return nil, left
	}
	message := "the pod did not start within 10 minutes"
	if o.Trouble != nil {
		message += ": " + o.Trouble.Message
	}
	return &health.Trouble{Reason: slipwayv1alpha1.ReasonPodPending, Message: message}, 0
}

// Newest is the last pod of a Job that was made. Labels alone, which anybody may give to a pod, make none.
func Newest(job *batchv1.Job, pods []corev1.Pod) *corev1.Pod {
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
func (o *Observation) ofPod(pod *corev1.Pod, steps []Step, events []corev1.Event) {
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
			o.waiting(pod, events)
			return
		}
	}
	o.State = Succeeded
}

// ofStep reads how a step ended, and reports whether it was well.
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
		*o = o.fail(slipwayv1alpha1.ReasonPodLost,
			fmt.Sprintf("the step %q ended with exit code %d and without a result", step, ended.ExitCode))
	}
	return false
}

// evicted says why a pod was ended from outside.
func (o *Observation) evicted(pod *corev1.Pod) {
	if pod.Status.Reason == slipwayv1alpha1.ReasonEvicted {
		*o = o.fail(slipwayv1alpha1.ReasonEvicted, "the node threw the pod out")
	}
}

// waiting says what keeps a pod, or the container of the next step, from starting.
func (o *Observation) waiting(pod *corev1.Pod, events []corev1.Event) {
	if verdict := health.Pod(pod, events...); verdict.State == health.Failed || verdict.Reason == slipwayv1alpha1.ReasonUnschedulable {
		o.Trouble = verdict.Trouble()
	}
}

func (o *Observation) fail(reason, message string) Observation {
	failed := *o
	failed.State = Failed
	failed.Trouble = &health.Trouble{Reason: reason, Message: message}
	return failed
}
