//go:build apitest

package backuprun_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

func TestARunCompletesWhenItsCopyWasReadBack(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.run("shop-now")
	job := f.job("shop-now-0-1")
	f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if err := f.cluster.Work(t.Context(), job, mover.StepVerify); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonVerifying)
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	status := run.Status
	if status.Files != 3 || status.Bytes != 1000 || status.AddedBytes != 500 || status.Verification == nil || status.Verification.ReadFiles != 1 ||
		status.RepositoryID != workload.RepositoryID || len(status.Volumes) != 1 || !status.Volumes[0].Verified || status.Volumes[0].SnapshotID == "" ||
		status.CompletionTime == nil || !meta.IsStatusConditionTrue(status.Conditions, slipwayv1alpha1.ConditionReady) {
		t.Errorf("status is %+v", status)
	}
	f.gone("shop-now-0-1")
}

// Every way to end that is no proof of a copy ends the run as Failed, with its own reason.
func TestARunNeverCompletesWithoutAProof(t *testing.T) {
	env.StartOperator(t, nil)
	of := func(step mover.Step, change func(*mover.Result)) func(mover.Step, *mover.Result) *mover.Result {
		return func(s mover.Step, result *mover.Result) *mover.Result {
			if s == step {
				change(result)
			}
			return result
		}
	}
	kind := func(step mover.Step, kind string) func(mover.Step, *mover.Result) *mover.Result {
		return of(step, func(r *mover.Result) { r.OK, r.Kind, r.Message = false, kind, "words" })
	}
	tests := map[string]struct {
		change func(mover.Step, *mover.Result) *mover.Result
		reason string
		retry  bool
	}{
		"something is unreadable":         {kind(mover.StepSnapshot, "SourceUnreadable"), slipwayv1alpha1.ReasonSourceUnreadable, false},
		"the volume is empty":             {kind(mover.StepSnapshot, "SourceEmpty"), slipwayv1alpha1.ReasonSourceEmpty, false},
		"the password is wrong":           {kind(mover.StepSnapshot, "WrongPassword"), slipwayv1alpha1.ReasonWrongPassword, false},
		"the copy is damaged":             {kind(mover.StepVerify, "Corrupt"), slipwayv1alpha1.ReasonCorrupt, false},
		"the copy is not there":           {kind(mover.StepVerify, "NotFound"), slipwayv1alpha1.ReasonRepositoryNotFound, false},
		"the destination does not answer": {kind(mover.StepSnapshot, "Unreachable"), slipwayv1alpha1.ReasonUnreachable, true},
		"killed while verifying": {func(s mover.Step, r *mover.Result) *mover.Result {
			if s == mover.StepVerify {
				return nil
			}
			return r
		}, slipwayv1alpha1.ReasonPodLost, true},
		"another copy was verified":             {of(mover.StepVerify, func(r *mover.Result) { r.Snapshots[0].ID = "another" }), slipwayv1alpha1.ReasonMoverFailed, true},
		"none was verified":                     {of(mover.StepVerify, func(r *mover.Result) { r.Snapshots = nil }), slipwayv1alpha1.ReasonMoverFailed, true},
		"the copy is of another run":            {of(mover.StepSnapshot, func(r *mover.Result) { r.Snapshot.Run = "another" }), slipwayv1alpha1.ReasonMoverFailed, true},
		"it was verified in another repository": {of(mover.StepVerify, func(r *mover.Result) { r.RepositoryID = "another" }), slipwayv1alpha1.ReasonMoverFailed, true},
		"the copy holds fewer files":            {of(mover.StepVerify, func(r *mover.Result) { r.Verify.Files-- }), slipwayv1alpha1.ReasonMoverFailed, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.run("shop-now")
			if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), tc.change); err != nil {
				t.Fatal(err)
			}
			if tc.retry {
				run := f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
				if run.Status.Attempt != 2 || !strings.Contains(run.Status.Message, tc.reason) {
					t.Errorf("attempt %d: %s", run.Status.Attempt, run.Status.Message)
				}
				return
			}
			run := f.wait("shop-now", slipwayv1alpha1.BackupFailed, tc.reason)
			if !meta.IsStatusConditionTrue(run.Status.Conditions, slipwayv1alpha1.ConditionStalled) || run.Status.Volumes[0].Verified {
				t.Errorf("status is %+v", run.Status)
			}
			if job := f.job("shop-now-0-1"); !job.DeletionTimestamp.IsZero() {
				t.Error("the Job with the log of the failure is being deleted")
			}
		})
	}
}

func TestARunWaitsForWhatIsNotThereYet(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) {
		b.Spec.Source = "later"
		b.Spec.Encryption = &slipwayv1alpha1.LocalReference{Name: "my-key"}
	})
	f.run("shop-now")
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSecretNotFound)
	f.create(f.secret("my-key", "password"))
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound)
}

func TestOneRunOfABackupAtATime(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.run("shop-a")
	job := f.job("shop-a-0-1")
	f.run("shop-b")
	f.wait("shop-b", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonQueued)
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-a", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	f.job("shop-b-0-1")
}

// Who reads volumes runs with as few rights as can be, where the volume is used, and as the user of its pods.
func TestThePodOfARun(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	user, group := int64(1234), int64(2345)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: f.namespace},
		Spec: corev1.PodSpec{
			NodeName:        "node-7",
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user, FSGroup: &group},
			Containers:      []corev1.Container{{Name: "db", Image: "db:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shop-data"},
			}}},
		},
	}
	f.create(pod)
	f.run("shop-now")
	spec := f.job("shop-now-0-1").Spec.Template.Spec
	if *spec.SecurityContext.RunAsUser != user || spec.SecurityContext.FSGroup != nil || len(spec.SecurityContext.SupplementalGroups) != 1 ||
		spec.SecurityContext.SupplementalGroups[0] != group || *spec.AutomountServiceAccountToken || spec.NodeName != "" {
		t.Errorf("the pod is %+v", spec)
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchFields[0].Values[0] != "node-7" {
		t.Errorf("it may run on %+v", terms)
	}
	for _, mount := range spec.InitContainers[0].VolumeMounts {
		if mount.Name == "volume" && !mount.ReadOnly {
			t.Error("the volume is mounted for writing")
		}
	}
	for _, mount := range spec.Containers[0].VolumeMounts {
		if mount.Name == "volume" {
			t.Error("the verification sees the volume")
		}
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if !meta.IsStatusConditionTrue(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource) {
		t.Errorf("nothing says that the volume is written to meanwhile: %+v", run.Status.Conditions)
	}
	environment.Eventually(t, func() error { return client.IgnoreNotFound(env.Client.Delete(t.Context(), pod)) })
}
