//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// A drill restores what was copied, on real volumes. When the repository loses a pack, the next one fails and says so.
func testADrillPassesUntilTheRepositoryIsDamaged(t *testing.T) {
	t.Parallel()
	f, _ := withData(t)
	f.backup(dataName, func(s *slipwayv1alpha1.BackupSpec) {
		s.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{
			Image: cluster.DemoImage, Command: []string{"/slipway-demo", "tree", "list", "/scratch/" + dataName},
		}}
	})
	run := f.backedUp(dataName, "first")
	if len(run.Status.Volumes[0].ManifestDigest) != 64 {
		t.Fatalf("the run has no digest of a manifest: %+v", run.Status.Volumes)
	}
	f.drill("one")
	passed := f.waitBackup(dataName,
		drillEnded(""),
		backupIs(slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionTrue, slipwayv1alpha1.ReasonDrillPassed),
		backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
	)
	d := passed.Status.Drill
	if d.ComparedFiles == 0 || d.ComparedBytes == 0 || d.Run != "first" || d.SnapshotID != run.Status.Volumes[0].SnapshotID {
		t.Errorf("the drill is %+v, the run %+v", d, run.Status)
	}
	if shown := f.Kubectl("describe", "backup", dataName); !strings.Contains(shown, "DrillPassed") {
		t.Errorf("kubectl describe shows:\n%s", shown)
	}

	f.tree("flip", "s3") // the volume of the S3 server
	f.drill("two")
	failed := f.waitBackup(dataName,
		drillEnded(d.LastRequest),
		backupIs(slipwayv1alpha1.ConditionDrillPassed, metav1.ConditionFalse, slipwayv1alpha1.ReasonCorrupt),
		backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonDrillFailed),
	)
	if got := failed.Status.Drill; !got.LastSuccessTime.Equal(d.LastSuccessTime) || got.ComparedFiles != 0 {
		t.Errorf("the drill is %+v", got)
	}
	if log := f.Kubectl("logs", "job/"+failed.Status.Drill.Name+"-1", "-c", "restore"); !strings.Contains(log, "Corrupt") {
		t.Errorf("the log of the Job that failed stays, and says: %s", log)
	}
}

// drill asks for a drill of the test's Backup.
func (f *fixture) drill(value string) {
	f.Helper()
	backup := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: dataName, Namespace: f.Namespace}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, slipwayv1alpha1.AnnotationDrill, value)
	if err := cluster.Patch(f.Context(), backup, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.Fatal(err)
	}
}

// drillEnded checks that a drill has ended that another request asked for than the one before.
func drillEnded(before string) func(*slipwayv1alpha1.Backup) error {
	return func(b *slipwayv1alpha1.Backup) error {
		d := b.Status.Drill
		if d == nil || d.UnderWay() || d.LastTime == nil || d.LastRequest == before {
			return fmt.Errorf("the drill is %+v", d)
		}
		return nil
	}
}
