//go:build postgres

package postgres

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	f.StartRun(database, name)
	run = f.Completed(name)
	return run, from, f.moves()
}

// restored brings the newest copy back into a new volume of the name.
func (f *fixture) restored(name string) *slipwayv1alpha1.Restore {
	f.Helper()
	f.StartRestore(name, claimSize, func(spec *slipwayv1alpha1.RestoreSpec) { spec.Backup = &slipwayv1alpha1.LocalReference{Name: database} })
	return f.Restored(name, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonRestored)
}
