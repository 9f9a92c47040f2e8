package health

import (
	"fmt"
	"regexp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/text"
)

// Reasons of a Job.
const (
	// ReasonJobSuspended: the Job runs no pods until somebody resumes it.
	ReasonJobSuspended = "JobSuspended"
	// ReasonJobRunning: the Job runs.
	ReasonJobRunning = "JobRunning"
)

// Job judges a Job by what its controller says of it. The verdict is terminal when it will not change any more: a Job that is
// complete, or that has failed, stays so.
//
// The Job's controller decides first (FailureTarget, SuccessCriteriaMet), and says Failed or Complete when its pods have
// ended. What is decided is told at once; it is terminal when the pods have ended.
func Job(job *batchv1.Job) Verdict {
	name := fmt.Sprintf("Job %q", job.Name)
	switch failed, decided := jobCondition(job, batchv1.JobFailed), jobCondition(job, batchv1.JobFailureTarget); {
	case job.UID == "":
		return Verdict{State: Unknown}
	case failed != nil:
		return jobFailed(name, failed, true)
	case jobCondition(job, batchv1.JobComplete) != nil:
		// Also while it is being deleted: what it did is done.
		return Verdict{State: Healthy, Terminal: true}
	case !job.DeletionTimestamp.IsZero():
		return Verdict{State: Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: name + " is being deleted"}
	case decided != nil:
		return jobFailed(name, decided, false)
	case jobCondition(job, batchv1.JobSuccessCriteriaMet) != nil:
		return Verdict{State: Progressing, Reason: ReasonJobRunning, Message: name + " has succeeded, and its other pods are being ended"}
	case jobCondition(job, batchv1.JobSuspended) != nil, job.Spec.Suspend != nil && *job.Spec.Suspend:
		return Verdict{State: Progressing, Reason: ReasonJobSuspended, Message: name + " is suspended (spec.suspend)"}
	case job.Status.StartTime == nil:
		return Verdict{State: Progressing, Reason: ReasonNotObserved, Message: name + " has not been looked at by its controller yet"}
	default:
		return Verdict{State: Progressing, Reason: ReasonJobRunning, Message: name + " runs"}
	}
}

// jobFailed says why a Job failed. Of the controller's words only those about a failure policy and about indexes say more than
// the reason does; the rest is the same for every Job.
func jobFailed(name string, c *batchv1.JobCondition, ended bool) Verdict {
	verdict := Verdict{State: Failed, Reason: c.Reason, Terminal: ended}
	switch c.Reason {
	case batchv1.JobReasonBackoffLimitExceeded:
		verdict.Message = name + " failed: its pods failed more often than spec.backoffLimit allows"
	case batchv1.JobReasonDeadlineExceeded:
		verdict.Message = name + " failed: it ran longer than spec.activeDeadlineSeconds"
	case batchv1.JobReasonPodFailurePolicy:
		verdict.Message = name + " failed, as a rule of spec.podFailurePolicy says: " + jobWords(c.Message)
	case batchv1.JobReasonFailedIndexes:
		verdict.Message = name + " failed: some of its indexes failed"
	case batchv1.JobReasonMaxFailedIndexesExceeded:
		verdict.Message = name + " failed: more of its indexes failed than spec.maxFailedIndexes allows"
	case "":
		verdict.Reason = slipwayv1alpha1.ReasonPodFailed
		verdict.Message = name + " failed"
	default:
		// A controller of its own (spec.managedBy) has its own reasons.
		verdict.Message = name + " failed: " + jobWords(c.Message)
	}
	return verdict
}

// podOfJob is how the Job's controller names a pod, which has another name in the next attempt.
var podOfJob = regexp.MustCompile(`\b([Pp]od) \S+/\S+`)

// jobWords are those of a Job's controller, without what differs from one attempt to the next.
func jobWords(message string) string {
	message = podOfJob.ReplaceAllString(message, "$1")
	return text.Cut(withoutAddresses(message), maxTermination)
}

// jobCondition returns a condition that is true, or nil.
func jobCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
