package mover

import (
	"encoding/json"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// aJob is one that was made at noon, with these conditions.
func aJob(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-0-1", UID: "job", CreationTimestamp: metav1.NewTime(noon)},
		Status:     batchv1.JobStatus{StartTime: &metav1.Time{Time: noon}, Conditions: conditions},
	}
}

func condition(conditionType batchv1.JobConditionType, reason string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: conditionType, Status: corev1.ConditionTrue, Reason: reason}
}

// aPod is the pod of that Job. States are those of the steps snapshot and verify.
func aPod(phase corev1.PodPhase, snapshot, verify corev1.ContainerState) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-0-1-abcde", Labels: map[string]string{batchv1.JobNameLabel: "shop-0-1", batchv1.ControllerUidLabel: "job"}},
		Status: corev1.PodStatus{
			Phase:                 phase,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "snapshot", State: snapshot}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "verify", State: verify}},
		},
	}
}

func ended(code int32, reason string, result any) corev1.ContainerState {
	var message string
	switch r := result.(type) {
	case string:
		message = r
	case Result:
		raw, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		message = string(raw)
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

var (
	waiting  = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
	running  = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon.Add(time.Minute))}}
	made     = ended(0, "Completed", Result{Command: "snapshot", OK: true, RepositoryID: "r", Snapshot: &SnapshotResult{ID: "s"}})
	readBack = ended(0, "Completed", Result{Command: "verify", OK: true, RepositoryID: "r", Verify: &VerifyResult{}})
	failed   = ended(17, "Error", Result{Command: "snapshot", Kind: "SourceUnreadable", Message: "2 paths could not be read"})
)

// Only two good results, each from the step that it belongs to, are a success. Whatever else happens is not.
func TestWhatAJobHasComeTo(t *testing.T) {
	complete := condition(batchv1.JobComplete, "")
	tests := map[string]struct {
		job    *batchv1.Job
		pods   []corev1.Pod
		state  State
		step   Step
		reason string
	}{
		"there is none":                   {nil, nil, Absent, "", ""},
		"it has no pod yet":               {aJob(), nil, Starting, StepSnapshot, ""},
		"the pod is being started":        {aJob(), []corev1.Pod{aPod(corev1.PodPending, waiting, waiting)}, Starting, StepSnapshot, ""},
		"the first step runs":             {aJob(), []corev1.Pod{aPod(corev1.PodPending, running, waiting)}, Working, StepSnapshot, ""},
		"the second step begins":          {aJob(), []corev1.Pod{aPod(corev1.PodPending, made, waiting)}, Working, StepVerify, ""},
		"the second step runs":            {aJob(), []corev1.Pod{aPod(corev1.PodRunning, made, running)}, Working, StepVerify, ""},
		"both have said that all is well": {aJob(), []corev1.Pod{aPod(corev1.PodSucceeded, made, readBack)}, Succeeded, StepVerify, ""},
		"the first step has failed":       {aJob(), []corev1.Pod{aPod(corev1.PodFailed, failed, waiting)}, Failed, StepSnapshot, "SourceUnreadable"},
		"the first step has failed, and the Job knows": {
			aJob(condition(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)),
			[]corev1.Pod{aPod(corev1.PodFailed, failed, waiting)},
			Failed, StepSnapshot, "SourceUnreadable",
		},
		"an exit code of 0 without a result":      {aJob(complete), []corev1.Pod{aPod(corev1.PodSucceeded, made, ended(0, "Completed", ""))}, Failed, StepVerify, "PodLost"},
		"an exit code of 0 with half a result":    {aJob(complete), []corev1.Pod{aPod(corev1.PodSucceeded, made, ended(0, "Completed", `{"command":"verify","ok":tr`))}, Failed, StepVerify, "PodLost"},
		"an exit code of 0 with another's result": {aJob(complete), []corev1.Pod{aPod(corev1.PodSucceeded, made, made)}, Failed, StepVerify, "PodLost"},
		"a good result with another exit code":    {aJob(), []corev1.Pod{aPod(corev1.PodFailed, made, ended(1, "Error", Result{Command: "verify", OK: true}))}, Failed, StepVerify, "PodLost"},
		"a result of nothing":                     {aJob(complete), []corev1.Pod{aPod(corev1.PodSucceeded, made, ended(0, "Completed", `{}`))}, Failed, StepVerify, "PodLost"},
		"an exit code of 0 and a result that says no": {
			aJob(complete),
			[]corev1.Pod{aPod(corev1.PodSucceeded, made, ended(0, "Completed", Result{Command: "verify", Kind: "Corrupt", Message: "x"}))},
			Failed, StepVerify, "Corrupt",
		},
		"a kind that nobody knows":       {aJob(), []corev1.Pod{aPod(corev1.PodFailed, ended(1, "Error", Result{Command: "snapshot", Kind: "New"}), waiting)}, Failed, StepSnapshot, "MoverFailed"},
		"killed for its memory":          {aJob(), []corev1.Pod{aPod(corev1.PodFailed, ended(137, "OOMKilled", ""), waiting)}, Failed, StepSnapshot, "OOMKilled"},
		"killed":                         {aJob(), []corev1.Pod{aPod(corev1.PodFailed, ended(137, "Error", ""), waiting)}, Failed, StepSnapshot, "PodLost"},
		"complete, and the pod has gone": {aJob(complete), nil, Failed, StepSnapshot, "PodLost"},
		"failed, and the pod has gone":   {aJob(condition(batchv1.JobFailed, "BackoffLimitExceeded")), nil, Failed, StepSnapshot, "PodLost"},
		"it took too long":               {aJob(condition(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), nil, Failed, StepSnapshot, "DeadlineExceeded"},
		"it took too long, and the step was killed for it": {
			aJob(condition(batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded)),
			[]corev1.Pod{aPod(corev1.PodFailed, ended(137, "Error", ""), waiting)},
			Failed, StepSnapshot, "DeadlineExceeded",
		},
		"the pod of another Job of that name": {
			aJob(), []corev1.Pod{func() corev1.Pod {
				pod := aPod(corev1.PodSucceeded, made, readBack)
				pod.Labels[batchv1.ControllerUidLabel] = "another"
				return pod
			}()}, Starting, StepSnapshot, "",
		},
		"evicted before the second step": {
			aJob(), []corev1.Pod{func() corev1.Pod {
				pod := aPod(corev1.PodFailed, made, waiting)
				pod.Status.Reason = "Evicted"
				return pod
			}()}, Failed, StepVerify, "Evicted",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Observe(tc.job, tc.pods, []Step{StepSnapshot, StepVerify})
			reason := ""
			if got.Trouble != nil {
				reason = got.Trouble.Reason
			}
			if got.State != tc.state || got.Step != tc.step || reason != tc.reason {
				t.Errorf("got %s in %q, %q, want %s in %q, %q", got.State, got.Step, reason, tc.state, tc.step, tc.reason)
			}
		})
	}
}
