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
	// ReasonJobSuspended: the Job runs no pods until it is resumed.
	ReasonJobSuspended = "JobSuspended"
	// ReasonJobRunning: the Job runs.
	ReasonJobRunning = "JobRunning"
)

// Job evaluates a Job by the conditions of its controller. The verdict is terminal when it
// will not change any more: a complete or failed Job stays so.
//
// The Job controller first sets FailureTarget or SuccessCriteriaMet. It sets Failed or
// Complete when all pods have ended. The verdict follows the first condition at once, and
// is terminal with the second.
func Job(job *batchv1.Job) Verdict {
	name := fmt.Sprintf("Job %q", job.Name)
	switch failed, decided := jobCondition(job, batchv1.JobFailed), jobCondition(job, batchv1.JobFailureTarget); {
	case job.UID == "":
		return Verdict{State: Unknown}
	case failed != nil:
		return jobFailed(name, failed, true)
	case jobCondition(job, batchv1.JobComplete) != nil:
		// This also holds for a Job that is being deleted, because its work is done.
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

// jobFailed says why a Job failed. It quotes the controller's message only for reasons with
// details in it. For other reasons the message is the same for every Job.
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
		// A custom controller (spec.managedBy) has its own reasons.
		verdict.Message = name + " failed: " + jobWords(c.Message)
	}
	return verdict
}

// podOfJob matches the name of a pod in a message of the Job controller. Each attempt has a
// pod with another name.
var podOfJob = regexp.MustCompile(`\b([Pp]od) \S+/\S+`)

// jobWords returns a message of the Job controller without the parts that differ between
// attempts.
func jobWords(message string) string {
	message = podOfJob.ReplaceAllString(message, "$1")
	return text.Cut(withoutAddresses(message), maxTermination)
}

// jobCondition returns the condition of that type if it is true, otherwise nil.
func jobCondition(job *batchv1.Job, conditionType batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == conditionType && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
