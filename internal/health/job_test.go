package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// job returns a Job that its controller has observed, with these conditions set to true.
func job(change func(*batchv1.Job), conditions ...batchv1.JobCondition) *batchv1.Job {
	started := metav1.NewTime(time.Unix(1, 0))
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "run-1", UID: "1"}, Status: batchv1.JobStatus{StartTime: &started, Conditions: conditions}}
	if change != nil {
		change(j)
	}
	return j
}

func says(conditionType batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

func TestJob(t *testing.T) {
	yes := true
	going := func(j *batchv1.Job) { deleted := metav1.NewTime(time.Unix(9, 0)); j.DeletionTimestamp = &deleted }
	failed := func(reason, message string, terminal bool) health.Verdict {
		return health.Verdict{State: health.Failed, Reason: reason, Message: message, Terminal: terminal}
	}
	backoff := `Job "run-1" failed: its pods failed more often than spec.backoffLimit allows`
	running := health.Verdict{State: health.Progressing, Reason: health.ReasonJobRunning, Message: `Job "run-1" runs`}
	suspended := health.Verdict{State: health.Progressing, Reason: health.ReasonJobSuspended, Message: `Job "run-1" is suspended (spec.suspend)`}
	tests := map[string]struct {
		job  *batchv1.Job
		want health.Verdict
	}{
		"there is none": {&batchv1.Job{}, health.Verdict{State: health.Unknown}},
		"nobody has looked at it": {
			job(func(j *batchv1.Job) { j.Status.StartTime = nil }),
			health.Verdict{State: health.Progressing, Reason: health.ReasonNotObserved, Message: `Job "run-1" has not been looked at by its controller yet`},
		},
		"it runs": {job(nil), running},
		"a condition that is not true": {
			job(nil, batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionFalse}, batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}),
			running,
		},
		"suspended":                {job(func(j *batchv1.Job) { j.Spec.Suspend = &yes }, says(batchv1.JobSuspended, "JobSuspended", "Job suspended")), suspended},
		"suspended from the start": {job(func(j *batchv1.Job) { j.Spec.Suspend = &yes; j.Status.StartTime = nil }), suspended},
		"complete":                 {job(nil, says(batchv1.JobSuccessCriteriaMet, "CompletionsReached", ""), says(batchv1.JobComplete, "CompletionsReached", "")), health.Verdict{State: health.Healthy, Terminal: true}},
		"succeeded, and pods are left": {
			job(nil, says(batchv1.JobSuccessCriteriaMet, "SuccessPolicy", "Matched rules at index 0")),
			health.Verdict{State: health.Progressing, Reason: health.ReasonJobRunning, Message: `Job "run-1" has succeeded, and its other pods are being ended`},
		},
		"its pods fail too often":                  {job(nil, says(batchv1.JobFailureTarget, "BackoffLimitExceeded", "Job has reached the specified backoff limit"), says(batchv1.JobFailed, "BackoffLimitExceeded", "")), failed("BackoffLimitExceeded", backoff, true)},
		"its pods fail too often, and one is left": {job(nil, says(batchv1.JobFailureTarget, "BackoffLimitExceeded", "Job has reached the specified backoff limit")), failed("BackoffLimitExceeded", backoff, false)},
		"it takes too long":                        {job(nil, says(batchv1.JobFailed, "DeadlineExceeded", "Job was active longer than specified deadline")), failed("DeadlineExceeded", `Job "run-1" failed: it ran longer than spec.activeDeadlineSeconds`, true)},
		"a rule about its exit code": {
			job(nil, says(batchv1.JobFailed, "PodFailurePolicy", "Container run for pod team/run-1-x7k2p failed with exit code 42 matching FailJob rule at index 0")),
			failed("PodFailurePolicy", `Job "run-1" failed, as a rule of spec.podFailurePolicy says: Container run for pod failed with exit code 42 matching FailJob rule at index 0`, true),
		},
		"a rule about a condition": {
			job(nil, says(batchv1.JobFailed, "PodFailurePolicy", "Pod team/run-1-x7k2p has condition DisruptionTarget matching FailJob rule at index 1")),
			failed("PodFailurePolicy", `Job "run-1" failed, as a rule of spec.podFailurePolicy says: Pod has condition DisruptionTarget matching FailJob rule at index 1`, true),
		},
		"some indexes failed":     {job(nil, says(batchv1.JobFailed, "FailedIndexes", "Job has failed indexes")), failed("FailedIndexes", `Job "run-1" failed: some of its indexes failed`, true)},
		"too many indexes failed": {job(nil, says(batchv1.JobFailed, "MaxFailedIndexesExceeded", "")), failed("MaxFailedIndexesExceeded", `Job "run-1" failed: more of its indexes failed than spec.maxFailedIndexes allows`, true)},
		"failed without a reason": {job(nil, says(batchv1.JobFailed, "", "")), failed(slipwayv1alpha1.ReasonPodFailed, `Job "run-1" failed`, true)},
		"failed for another controller's reason": {
			job(nil, says(batchv1.JobFailed, "QuotaGone", "no answer from 10.0.0.1:443")), failed("QuotaGone", `Job "run-1" failed: no answer from (address)`, true),
		},
		"it goes":                      {job(going), health.Verdict{State: health.Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: `Job "run-1" is being deleted`}},
		"it goes while it fails":       {job(going, says(batchv1.JobFailureTarget, "DeadlineExceeded", "")), health.Verdict{State: health.Terminating, Reason: slipwayv1alpha1.ReasonTerminating, Message: `Job "run-1" is being deleted`}},
		"it goes, and it was complete": {job(going, says(batchv1.JobComplete, "CompletionsReached", "")), health.Verdict{State: health.Healthy, Terminal: true}},
		"it goes, and it had failed":   {job(going, says(batchv1.JobFailed, "BackoffLimitExceeded", "")), failed("BackoffLimitExceeded", backoff, true)},
		"failed after it was complete": {job(nil, says(batchv1.JobComplete, "", ""), says(batchv1.JobFailed, "BackoffLimitExceeded", "")), failed("BackoffLimitExceeded", backoff, true)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, health.Job(tc.job)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
