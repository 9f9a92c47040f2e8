//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// A command that never ends holds the pod until the test takes it away. The next attempt runs one that ends.
func testARunWhosePodIsLostIsMadeByAnotherOne(t *testing.T) {
	t.Parallel()
	f := withDump(t)
	tests := map[string]func(*fixture, *corev1.Pod) error{
		// A node that is gone has the same end: the pod is deleted, and nobody waits for it.
		"deleted": func(f *fixture, pod *corev1.Pod) error {
			return cluster.Delete(f.Context(), pod, client.GracePeriodSeconds(0))
		},
		"evicted": func(f *fixture, pod *corev1.Pod) error {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}}
			return cluster.SubResource("eviction").Create(f.Context(), pod, eviction)
		},
		"job-deleted": func(f *fixture, pod *corev1.Pod) error {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: pod.Labels[batchv1.JobNameLabel], Namespace: pod.Namespace}}
			return cluster.Delete(f.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground))
		},
	}
	for name := range tests {
		f.backup(name, dumps("/slipway-demo"))
		f.StartRun(name, name)
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			pod := f.mover(name)
			if err := lose(f, pod); err != nil {
				t.Fatal(err)
			}
			update(f, mustGet(f, name, &slipwayv1alpha1.Backup{}), func(b *slipwayv1alpha1.Backup) {
				b.Spec.Dump.Command = []string{"/slipway-demo", "dump", fmt.Sprint(dumpLines)}
			})
			run := f.Completed(name)
			if volume := run.Status.Volumes[0]; !volume.Verified || volume.Files != 1 {
				t.Errorf("the status is %+v", volume)
			}
			if name != "job-deleted" && run.Status.Attempt != 2 {
				t.Errorf("attempt %d made the copy, want 2", run.Status.Attempt)
			}
			restore := name + "-again"
			f.restore(restore, func(s *slipwayv1alpha1.RestoreSpec) { s.Backup.Name = name })
			if restored := f.Restored(restore, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored); restored.Status.SnapshotID != run.Status.Volumes[0].SnapshotID {
				t.Errorf("restored was %s, and the run made %s", restored.Status.SnapshotID, run.Status.Volumes[0].SnapshotID)
			}
		})
	}
}

// mover waits for the pod of a run whose first step runs.
func (f *fixture) mover(run string) *corev1.Pod {
	f.Helper()
	var found *corev1.Pod
	f.Eventually(func() error {
		pods := &corev1.PodList{}
		if err := cluster.List(f.Context(), pods, client.InNamespace(f.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelBackupRun: run}); err != nil {
			return err
		}
		i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool {
			return slices.ContainsFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == "snapshot" && s.State.Running != nil })
		})
		if i < 0 {
			return fmt.Errorf("none of %d pods reads", len(pods.Items))
		}
		found = &pods.Items[i]
		return nil
	})
	return found
}
