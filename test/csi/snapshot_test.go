//go:build csi

package csi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
)

// copies is how many copies are made of a volume that is written to all the time.
const copies = 5

// A volume is written to all the time, number after number, to two files in turn. What is copied from a snapshot is of one
// moment. What is copied from the volume itself need not be, and its status says so.
func TestACopyFromASnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Claim("repository", "", claimSize)
	f.Claim("data", className, claimSize)
	f.writer("data")
	f.backup("snapshots", "data", slipwayv1alpha1.VolumeSnapshotRequire)
	seen := f.watchSnapshots()

	last := 0
	for i := range copies {
		name := fmt.Sprintf("snapshot-%d", i)
		f.StartRun("snapshots", name)
		run := f.Ran(name, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
		if run.Status.Volumes[0].ReadFrom != slipwayv1alpha1.ReadFromSnapshot || meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionCrashConsistent) == nil ||
			meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource) != nil {
			t.Errorf("the status of %s is %+v", name, run.Status)
		}
		made, deleted := seen(name + "-0-1")
		if made.IsZero() || deleted.IsZero() {
			t.Errorf("the VolumeSnapshot of %s was made at %v and deleted at %v", name, made, deleted)
		}
		f.restored(name, "restored-"+name)
		n, err := f.check("restored-" + name)
		if err != nil || n <= last {
			t.Errorf("the copy of %s has %d numbers, the one before %d (%v)", name, n, last, err)
		}
		last = n
	}
	f.nothingIsLeft()

	f.backup("live", "data", slipwayv1alpha1.VolumeSnapshotNever)
	broken := 0
	for i := range copies {
		name := fmt.Sprintf("live-%d", i)
		f.StartRun("live", name)
		run := f.Ran(name, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
		live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
		if live == nil || !strings.Contains(live.Message, "policy is Never") || meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionCrashConsistent) != nil {
			t.Errorf("the conditions of %s are %+v", name, run.Status.Conditions)
		}
		f.restored(name, "restored-"+name)
		if _, err := f.check("restored-" + name); err != nil {
			broken++
		}
	}
	if broken == 0 {
		t.Error("every copy from the volume itself was of one moment, too: the test does not tell one from the other")
	}
	f.Measured("of %d copies from a snapshot 0 were not of one moment, of %d from the volume itself %d", copies, copies, broken)
}

// watchSnapshots notes when VolumeSnapshots of the namespace are made and deleted.
func (f *fixture) watchSnapshots() func(name string) (made, deleted time.Time) {
	f.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: volumesnapshot.GroupVersion.Group, Version: "v1", Kind: "VolumeSnapshotList"})
	watcher, err := cluster.Watch(f.Context(), list, client.InNamespace(f.Namespace))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(watcher.Stop)
	type event struct {
		name string
		kind watch.EventType
		at   time.Time
	}
	events := make(chan event, 1000)
	go func() {
		for e := range watcher.ResultChan() {
			if object, ok := e.Object.(client.Object); ok {
				events <- event{object.GetName(), e.Type, time.Now()}
			}
		}
	}()
	made, deleted := map[string]time.Time{}, map[string]time.Time{}
	return func(name string) (time.Time, time.Time) {
		f.Eventually(func() error {
			for {
				select {
				case e := <-events:
					switch e.kind {
					case watch.Added:
						made[e.name] = e.at
					case watch.Deleted:
						deleted[e.name] = e.at
					}
					continue
				default:
				}
				if deleted[name].IsZero() {
					return fmt.Errorf("nobody has seen the deletion of the VolumeSnapshot %s", name)
				}
				return nil
			}
		})
		return made[name], deleted[name]
	}
}

// A volume that cannot be snapshotted is not read where a snapshot is asked for.
func TestARequiredSnapshotThatCannotBeTakenFailsTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Claim("repository", "", claimSize)
	f.Claim("data", "", claimSize)
	f.writer("data")
	f.backup("required", "data", slipwayv1alpha1.VolumeSnapshotRequire)
	f.StartRun("required", "now")
	waits := f.Ran("now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonNoVolumeSnapshotClass)
	if !strings.Contains(waits.Status.Message, "no CSI volume") {
		t.Errorf("the message is %q", waits.Status.Message)
	}
	// What is missing may appear for ten minutes.
	f.Patience = 11 * time.Minute
	f.Ran("now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonNoVolumeSnapshotClass)

	// Where it is not asked for, the volume itself is read, and that is reported.
	f.backup("auto", "data", slipwayv1alpha1.VolumeSnapshotAuto)
	f.StartRun("auto", "live")
	run := f.Ran("live", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	if live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); live == nil || !strings.Contains(live.Message, "no CSI volume") {
		t.Errorf("LiveSource is %+v", live)
	}
}
