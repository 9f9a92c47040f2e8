//go:build postgres

package postgres

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// backup makes a Backup of the volumes of the database, which runs by hand, changed as asked.
func (f *fixture) backup(change ...func(*slipwayv1alpha1.BackupSpec)) {
	f.Helper()
	b := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: database}, Spec: slipwayv1alpha1.BackupSpec{
		Source: "statefulset/" + database, Schedule: "0 2 * * *", Destination: "s3://backups",
		Verify: &slipwayv1alpha1.BackupVerify{Mode: slipwayv1alpha1.VerifyFull},
	}}
	for _, c := range change {
		c(&b.Spec)
	}
	f.Create(b)
}

// completed makes a run of the Backup, and returns it when its copies are verified, with how many entries the history had
// when it was asked for, and when it had ended.
func (f *fixture) completed(name string) (run *slipwayv1alpha1.BackupRun, from, to int64) {
	f.Helper()
	from = f.moves()
	run = &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: database}}
	f.Create(run)
	f.ends(run, func() (slipwayv1alpha1.BackupPhase, string) {
		return run.Status.Phase, run.Status.Reason + ": " + run.Status.Message
	})
	return run, from, f.moves()
}

// restored brings the newest copy back into a new volume of the name.
func (f *fixture) restored(name string) *slipwayv1alpha1.Restore {
	f.Helper()
	r := &slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slipwayv1alpha1.RestoreSpec{
		Backup: &slipwayv1alpha1.LocalReference{Name: database},
		Target: slipwayv1alpha1.RestoreTarget{Claim: name, Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("2Gi")}},
	}}
	f.Create(r)
	f.ends(r, func() (slipwayv1alpha1.BackupPhase, string) {
		return r.Status.Phase, r.Status.Reason + ": " + r.Status.Message
	})
	return r
}

// ends waits until an object is Completed, and fails at once when it is Failed.
func (f *fixture) ends(object client.Object, state func() (slipwayv1alpha1.BackupPhase, string)) {
	f.Helper()
	f.Eventually(func() error {
		if err := f.Get(object.GetName(), object); err != nil {
			return err
		}
		switch phase, why := state(); phase {
		case slipwayv1alpha1.BackupCompleted:
			return nil
		case slipwayv1alpha1.BackupFailed:
			f.Fatalf("%T %s failed: %s", object, object.GetName(), why)
			return nil
		default:
			return fmt.Errorf("%T %s is %s (%s)", object, object.GetName(), phase, why)
		}
	})
}

// condition is that of a run, or nil.
func condition(run *slipwayv1alpha1.BackupRun, conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(run.Status.Conditions, conditionType)
}
