package mover

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
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
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-0-1-abcde", Labels: map[string]string{batchv1.JobNameLabel: "shop-0-1", batchv1.ControllerUidLabel: "job"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "shop-0-1", UID: "job", Controller: new(true)}},
		},
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
		"a stranger's pod with the labels of the Job's": {
			aJob(), []corev1.Pod{func() corev1.Pod {
				pod := aPod(corev1.PodSucceeded, made, readBack)
				pod.OwnerReferences = nil
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

// A Backup has other fields for images than what the words about pods are made for.
func TestAnImageThatCannotBePulledIsToldWithItsField(t *testing.T) {
	for name, tc := range map[string]struct{ container, says, reason, want string }{
		"of a dump":             {ContainerDump, "no/such:1: not found", "ImageNotFound", "check spec.dump.image"},
		"of a drill":            {string(StepCommand), "no/such:1: not found", "ImageNotFound", "check spec.verify.drill.image"},
		"of the mover":          {string(StepSnapshot), "no/such:1: not found", "ImageNotFound", "check --backup-image of the operator"},
		"that is denied":        {string(StepCommand), "pull access denied, repository does not exist or may require authorization", "ImagePullDenied", "check spec.mover.imagePullSecrets"},
		"of the mover, refused": {string(StepSnapshot), "pull access denied, repository does not exist or may require authorization", "ImagePullDenied", "check spec.mover.imagePullSecrets"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod(corev1.PodPending, waiting, waiting)
			pod.Spec.InitContainers = []corev1.Container{{Name: tc.container}}
			pod.Labels[slipwayv1alpha1.LabelBackup] = "shop"
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: tc.container, Image: "no/such:1",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: tc.says}},
			}}
			got := Observe(aJob(), []corev1.Pod{pod}, []Step{StepSnapshot, StepVerify}).Trouble
			if got == nil || got.Reason != tc.reason || !strings.HasSuffix(got.Message, tc.want) {
				t.Errorf("got %+v, want %s: %s", got, tc.reason, tc.want)
			}
		})
	}
}

// What became of the command of a dump is told by the step that keeps its output, and by the container of the command.
func TestWhatADumpHasComeTo(t *testing.T) {
	exit := ended(30, "Error", Result{Command: "snapshot", Kind: "DumpFailed", Message: "the command ended with exit code 1: disk full"})
	cut := ended(31, "Error", Result{Command: "snapshot", Kind: "DumpLost", Message: "the command was cut off"})
	full := ended(16, "Error", Result{Command: "snapshot", Kind: "NoSpace", Message: "the destination is full"})
	killed := corev1.ContainerStatus{State: ended(137, "OOMKilled", ""), RestartCount: 1}
	killedBefore := corev1.ContainerStatus{State: running, LastTerminationState: ended(137, "OOMKilled", "")}
	waitsFor := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Image: "no/such:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	tests := map[string]struct {
		phase            corev1.PodPhase
		dump             corev1.ContainerStatus
		snapshot, verify corev1.ContainerState
		state            State
		reason, says     string
	}{
		"the command waits for its turn":         {corev1.PodPending, corev1.ContainerStatus{State: running}, waiting, waiting, Starting, "", ""},
		"the command runs":                       {corev1.PodPending, corev1.ContainerStatus{State: running}, running, waiting, Working, "", ""},
		"all is well, and the container is left": {corev1.PodRunning, corev1.ContainerStatus{State: running}, made, readBack, Succeeded, "", ""},
		"all is well, and the container is killed in the end": {
			corev1.PodSucceeded, corev1.ContainerStatus{State: ended(137, "Error", "")}, made, readBack, Succeeded, "", "",
		},
		"the image is not there": {
			corev1.PodPending, waitsFor("ImagePullBackOff", "no/such:1: not found"), waiting, waiting, Starting, "ImageNotFound", "check spec.dump.image",
		},
		"a Secret of its environment is missing": {
			corev1.PodPending, waitsFor("CreateContainerConfigError", `secret "shop-db" not found`), waiting, waiting, Starting, "CreateContainerConfigError", "shop-db",
		},
		"its last words are those of another trouble": {
			corev1.PodPending, corev1.ContainerStatus{State: ended(1, "Error", `pod "run-1" init container "dump": check spec.image`)}, waiting, waiting, Starting, "CrashLoopBackOff", `container "dump": check spec.image`,
		},
		"the command failed":                     {corev1.PodFailed, corev1.ContainerStatus{State: running}, exit, waiting, Failed, "DumpFailed", "exit code 1: disk full"},
		"its container was killed":               {corev1.PodFailed, corev1.ContainerStatus{State: ended(137, "Error", "")}, cut, waiting, Failed, "PodLost", "cut off"},
		"its container was out of memory":        {corev1.PodFailed, killed, cut, waiting, Failed, "OOMKilled", "spec.dump.resources"},
		"its container was, and runs again":      {corev1.PodFailed, killedBefore, cut, waiting, Failed, "OOMKilled", "spec.dump.resources"},
		"the command was, and said so":           {corev1.PodFailed, killedBefore, exit, waiting, Failed, "OOMKilled", "spec.dump.resources"},
		"it was, and that is not why":            {corev1.PodFailed, killedBefore, full, waiting, Failed, "NoSpace", "full"},
		"it was, and the copy is damaged":        {corev1.PodFailed, killedBefore, made, ended(21, "Error", Result{Command: "verify", Kind: "Corrupt", Message: "x"}), Failed, "Corrupt", "x"},
		"the container that keeps it was killed": {corev1.PodFailed, corev1.ContainerStatus{State: running}, ended(137, "OOMKilled", ""), waiting, Failed, "OOMKilled", `"snapshot"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := aPod(tc.phase, tc.snapshot, tc.verify)
			tc.dump.Name = ContainerDump
			pod.Labels[slipwayv1alpha1.LabelBackupRun] = "run"
			pod.Spec.InitContainers = []corev1.Container{{Name: ContainerDump}, {Name: "snapshot"}}
			pod.Status.InitContainerStatuses = append([]corev1.ContainerStatus{{Name: ContainerInstall, State: ended(0, "Completed", "")}, tc.dump}, pod.Status.InitContainerStatuses...)
			got := Observe(aJob(), []corev1.Pod{pod}, []Step{StepSnapshot, StepVerify})
			var reason, message string
			if got.Trouble != nil {
				reason, message = got.Trouble.Reason, got.Trouble.Message
			}
			if got.State != tc.state || reason != tc.reason || !strings.Contains(message, tc.says) {
				t.Errorf("got %s, %q: %q, want %s, %q: %q", got.State, reason, message, tc.state, tc.reason, tc.says)
			}
		})
	}
}
