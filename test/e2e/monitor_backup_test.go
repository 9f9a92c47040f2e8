//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

const historyClaim = "data-slipway-monitor-0"

// system returns the fixture in the namespace of Slipway itself. What the test makes there is deleted when it ends.
func (f *fixture) system() *fixture {
	s := *f.Fixture
	s.Namespace = livecluster.SystemNamespace
	return &fixture{&s}
}

// cleaned deletes an object when the test ends.
func (f *fixture) cleaned(object client.Object) {
	f.Cleanup(func() {
		object.SetNamespace(f.Namespace)
		if err := cluster.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			f.Error(err)
		}
	})
}

func (f *fixture) scaleMonitor(replicas int32) {
	f.Helper()
	set := mustGet(f, "slipway-monitor", &appsv1.StatefulSet{})
	update(f, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &replicas })
	f.Eventually(func() error {
		if err := f.Get(set.Name, set); err != nil {
			return err
		}
		if set.Status.Replicas != replicas || set.Status.ReadyReplicas != replicas {
			return fmt.Errorf("the monitor has %d pods, %d of them ready, want %d", set.Status.Replicas, set.Status.ReadyReplicas, replicas)
		}
		return nil
	})
}

// The history is backed up while the monitor writes it, its volume is lost, and it comes back with all that was in it, as
// docs/monitor.md says. The test takes the monitor away for a while, so it is not parallel.
func TestTheHistoryIsBackedUpAndRestored(t *testing.T) {
	w := watchWidgets(t)
	w.monitorReady()
	ask := w.reader(w.fixture, true)
	w.says(ask, []string{w.kind(), "Live"}, "coverage")
	w.write(w.Namespace, "kept", "alice", 1)
	w.says(ask, []string{"widget/kept"}, "changes", "--kind", w.kind())

	s := w.system()
	s.cleaned(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "history-copies"}})
	s.Claim("history-copies", "", dataSize)
	s.cleaned(&slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "history"}})
	s.backup("history", func(spec *slipwayv1alpha1.BackupSpec) {
		spec.Source, spec.Destination, spec.Schedule = historyClaim, "pvc://history-copies", "0 3 1 1 *"
	})
	s.StartRun("history", "history-by-hand")
	s.Completed("history-by-hand")

	// The volume is lost.
	s.scaleMonitor(0)
	claim := mustGet(s, historyClaim, &corev1.PersistentVolumeClaim{})
	size := claim.Spec.Resources.Requests.Storage().String()
	s.Delete(claim)
	s.Gone(historyClaim, &corev1.PersistentVolumeClaim{})
	w.write(w.Namespace, "kept", "bob", 2)

	s.cleaned(&slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: historyClaim}})
	s.StartRestore(historyClaim, size, func(spec *slipwayv1alpha1.RestoreSpec) {
		spec.Backup = &slipwayv1alpha1.LocalReference{Name: "history"}
	})
	s.Restored(historyClaim, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
	s.scaleMonitor(1)

	// What was recorded is there, and what changed while there was no monitor.
	w.says(ask, []string{"Created widget/kept in " + w.Namespace + " by alice", "~ .spec.size: 1 -> 2"},
		"history", w.kind()+"/kept", "-n", w.Namespace, "--since", "1h", "--diff")
}
