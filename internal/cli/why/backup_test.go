package why

import (
	"bytes"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// failedJob is a Job whose pod has ended with an error, and the pod.
func failedJob(name, owner string) (batchv1.Job, corev1.Pod) {
	job := batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"), OwnerReferences: clitest.ControlledBy("BackupRun", "owner", types.UID(owner))}}
	job.Status.Conditions = []batchv1.JobCondition{{
		Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit",
	}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-x", UID: types.UID(name + "-pod"), OwnerReferences: clitest.ControlledBy("Job", name, types.UID(name+"-uid"))}}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "snapshot", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 14, Reason: "Error", Message: `{"ok":false,"kind":"Unreachable"}`,
	}}}}
	return job, pod
}

func aBackup(conditions ...metav1.Condition) *backupFindings {
	return &backupFindings{findings: findings{now: clitest.Now}, name: "backup/shop-data", observed: 1, object: &slipwayv1alpha1.Backup{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data", Namespace: "team-a", UID: "backup-uid", Generation: 1},
		Status:     slipwayv1alpha1.BackupStatus{Conditions: conditions},
	}}
}

func TestWhyOfBackups(t *testing.T) {
	ready := clitest.Condition(slipwayv1alpha1.ConditionReady, true, slipwayv1alpha1.ReasonReady, "the newest verified copy is as new as is promised")
	kept := clitest.Condition(slipwayv1alpha1.ConditionRetentionApplied, true, slipwayv1alpha1.ReasonRetentionApplied, "what is not to be kept was removed")
	failed := clitest.Condition(slipwayv1alpha1.ConditionReady, false, slipwayv1alpha1.ReasonRunFailed, `BackupRun "shop-data-1" failed (Unreachable): the destination does not answer`)
	run := &slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data-1", UID: "run-uid"},
		Status: slipwayv1alpha1.BackupRunStatus{
			Phase: slipwayv1alpha1.BackupFailed, Reason: "Unreachable", Message: "the destination does not answer",
		},
	}
	job, pod := failedJob("shop-data-1-a", "run-uid")
	tests := map[string]func() *backupFindings{
		"backup-ready": func() *backupFindings { return aBackup(ready, kept) },
		"backup-run-failed": func() *backupFindings {
			f := aBackup(failed, kept)
			f.run, f.jobs, f.pods = run, []batchv1.Job{job}, []corev1.Pod{pod}
			f.logs = map[logTarget]logTail{{pod: pod.Name, container: "snapshot"}: {Lines: []string{`{"level":"ERROR","msg":"failed","kind":"Unreachable"}`}}}
			return f
		},
		"backup-retention": func() *backupFindings {
			f := aBackup(ready, clitest.Condition(slipwayv1alpha1.ConditionRetentionApplied, false, slipwayv1alpha1.ReasonMassDeletion, "20 copies would be removed at once"))
			return f
		},
		"backup-running": func() *backupFindings {
			f := aBackup(ready, kept)
			f.run = &slipwayv1alpha1.BackupRun{Status: slipwayv1alpha1.BackupRunStatus{Phase: slipwayv1alpha1.BackupRunning}}
			return f
		},
		"restore-failed": func() *backupFindings {
			message := "the target holds something"
			restoreJob, restorePod := failedJob("again-1", "restore-uid")
			f := &backupFindings{findings: findings{now: clitest.Now}, name: "restore/again", observed: 1, jobs: []batchv1.Job{restoreJob}, object: &slipwayv1alpha1.Restore{
				ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: "team-a", UID: "restore-uid", Generation: 1},
				Status: slipwayv1alpha1.RestoreStatus{Conditions: []metav1.Condition{
					clitest.Condition(slipwayv1alpha1.ConditionReady, false, slipwayv1alpha1.ReasonTargetNotEmpty, message),
					clitest.Condition(slipwayv1alpha1.ConditionStalled, true, slipwayv1alpha1.ReasonTargetNotEmpty, message),
				}},
			}}
			f.pods = []corev1.Pod{restorePod}
			return f
		},
		"backuprun-completed-at-the-second-attempt": func() *backupFindings {
			f := &backupFindings{findings: findings{now: clitest.Now}, name: "backuprun/shop-data-1", observed: 1, jobs: []batchv1.Job{job}, object: &slipwayv1alpha1.BackupRun{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-data-1", UID: "run-uid", Generation: 1},
				Status: slipwayv1alpha1.BackupRunStatus{Conditions: []metav1.Condition{
					clitest.Condition(slipwayv1alpha1.ConditionReady, true, slipwayv1alpha1.ReasonVerified, "every copy was read back"),
				}},
			}}
			f.pods = []corev1.Pod{pod}
			return f
		},
	}
	for name, newFindings := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFindings()
			clitest.Golden(t, "why/"+name+".txt", func(out *bytes.Buffer) error { return printWhy(out, f.explain()) })
		})
	}
}

func TestTheNewestRunIsThatOfTheBackup(t *testing.T) {
	shopData := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "shop-data", UID: "this"}}
	run := func(name, backup string, since time.Duration) slipwayv1alpha1.BackupRun {
		return slipwayv1alpha1.BackupRun{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: clitest.Ago(since)}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: backup},
		}
	}
	runs := []slipwayv1alpha1.BackupRun{run("a", "shop-data", time.Hour), run("b", "shop-data", time.Minute), run("c", "other", time.Second), run("d", "shop-data", 0)}
	isController := true
	runs[3].OwnerReferences = []metav1.OwnerReference{{Kind: "Backup", Name: "shop-data", UID: "deleted", Controller: &isController}}
	if got := newestRun(runs, shopData); got == nil || got.Name != "b" {
		t.Errorf("got %v", got)
	}
	if got := newestRun(nil, shopData); got != nil {
		t.Errorf("got %v, want none", got)
	}
}
