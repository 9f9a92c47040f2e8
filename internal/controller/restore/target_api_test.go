//go:build apitest

package restore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// existing asks for a volume that is there, and takes what it holds.
func existing(s *slipwayv1alpha1.RestoreSpec) { s.Target.Create, s.Overwrite = nil, true }

// pod returns the pod of a Job that is under way.
func (f *fixture) pod(job *batchv1.Job) *corev1.Pod {
	f.Helper()
	if err := f.cluster.Work(f.Context(), job, mover.StepRestore); err != nil {
		f.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := env.Client.List(f.Context(), pods, client.InNamespace(f.namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}); err != nil || len(pods.Items) != 1 {
		f.Fatalf("pods of the Job: %v, %d", err, len(pods.Items))
	}
	return &pods.Items[0]
}

// end plays that the kubelet says how a pod has ended.
func (f *fixture) end(pod *corev1.Pod) {
	f.Helper()
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}
	if err := env.Client.Status().Update(f.Context(), pod); err != nil {
		f.Fatal(err)
	}
}

// busy waits until a Restore says that it waits for the pod of a Job.
func (f *fixture) busy(name string, phase slipwayv1alpha1.BackupPhase, job string) {
	f.Helper()
	restore := f.waitFor(name, phase, slipwayv1alpha1.ReasonTargetBusy)
	if message := restore.Status.Message; !strings.Contains(message, `"`+job+`"`) || !strings.Contains(message, `"`+restore.Spec.Target.Claim+`"`) {
		f.Errorf("the message is %q, want the Job %q and the claim in it", message, job)
	}
}

// The pod of a Job that has gone may run on: for its grace period, or for ever on a node that does not answer.
func TestAJobIsNotMadeAgainBesideThePodOfTheOneBefore(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	pod := f.pod(job)
	f.wait(slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	f.delete(job)
	f.busy("again", slipwayv1alpha1.BackupRunning, "again-restore-1")
	f.noJob("again-restore-1")
	f.end(pod)
	if err := f.cluster.Move(t.Context(), f.job(1), nil); err != nil {
		t.Fatal(err)
	}
	f.wait(slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
}

func TestAnotherAttemptWaitsUntilThePodOfTheOneBeforeHasEnded(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.restore()
	job := f.job(1)
	pod := f.pod(job)
	f.wait(slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	// Somebody deletes the Job and has its pods go first. They do not.
	if err := env.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	restore := f.wait(slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
	due := client.RawPatch(types.MergePatchType, []byte(`{"status":{"attemptTime":"2026-01-01T00:00:00Z"}}`))
	if err := env.Client.Status().Patch(t.Context(), restore, due); err != nil {
		t.Fatal(err)
	}
	f.busy("again", slipwayv1alpha1.BackupPending, job.Name)

	let := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := env.Client.Patch(t.Context(), job, let); err != nil {
		t.Fatal(err)
	}
	f.gone(job)
	environment.Eventually(t, func() error {
		if err := f.get("again", restore); err != nil || strings.HasPrefix(restore.Status.Message, "a pod of Job ") {
			return err
		}
		return fmt.Errorf("the message is %q", restore.Status.Message)
	})
	f.busy("again", slipwayv1alpha1.BackupPending, job.Name)
	f.noJob("again-restore-2")

	zero := int64(0)
	if err := env.Client.Delete(t.Context(), pod, &client.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	second := f.job(2)
	claim, held := &corev1.PersistentVolumeClaim{}, &coordinationv1.Lease{}
	if err := f.get("restored", claim); err != nil {
		t.Fatal(err)
	}
	if err := f.get("restore-"+string(claim.UID), held); err != nil {
		t.Fatal(err)
	}
	if holder := held.Spec.HolderIdentity; holder == nil || !strings.HasPrefix(*holder, second.Name+"/") || held.OwnerReferences[0].UID != claim.UID {
		t.Errorf("the Lease is %+v of %+v", held.Spec, held.OwnerReferences)
	}
}

func TestTwoRestoresDoNotWriteToOneVolumeAtATime(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.claim("restored")
	f.claim("other")
	f.restore(existing)
	f.job(1)
	f.restoreCalled("too", existing)
	f.busy("too", slipwayv1alpha1.BackupPending, "again-restore-1")
	f.restoreCalled("elsewhere", existing, func(s *slipwayv1alpha1.RestoreSpec) { s.Target.Claim = "other" })
	f.jobCalled("elsewhere-restore-1")
	f.noJob("too-restore-1")
	if err := f.cluster.Move(t.Context(), f.job(1), nil); err != nil {
		t.Fatal(err)
	}
	f.jobCalled("too-restore-1")
}

// theWriter returns the Job of a Restore that has not ended. There may be one.
func (f *fixture) theWriter() (*batchv1.Job, error) {
	f.Helper()
	jobs := &batchv1.JobList{}
	if err := env.Client.List(f.Context(), jobs, client.InNamespace(f.namespace), client.HasLabels{slipwayv1alpha1.LabelRestore}); err != nil {
		return nil, err
	}
	writing := slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return health.Job(&job).Terminal })
	switch len(writing) {
	case 0:
		return nil, errors.New("no Job writes")
	case 1:
		return &writing[0], nil
	default:
		f.Fatalf("%d Jobs write at the same time", len(writing))
		return nil, nil
	}
}

// The Restores know nothing of each other yet, when they are made at once.
func TestOfManyRestoresToOneVolumeOneWrites(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.claim("restored")
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		f.restoreCalled(name, existing)
	}
	environment.Eventually(t, func() error {
		// A Job that has lost the Lease is deleted, and made again later.
		job, err := f.theWriter()
		if err == nil {
			return errors.Join(f.cluster.Move(t.Context(), job, nil), errors.New("a Job was there"))
		}
		for _, name := range names {
			restore := &slipwayv1alpha1.Restore{}
			if err := f.get(name, restore); err != nil || restore.Status.Phase != slipwayv1alpha1.BackupCompleted {
				return errors.Join(err, fmt.Errorf("%s is %s (%s)", name, restore.Status.Phase, restore.Status.Reason))
			}
		}
		return nil
	})
}
