//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const (
	// dataName is the name of the volume that is backed up, and of its Backup.
	dataName = "shop-data"
	// dataSize is that of the volume, and of those that it is restored to.
	dataSize = "1Gi"
)

// credentials makes or changes the Secret with the keys of an S3 server of another namespace.
func (f *fixture) credentials(endpoint string, change ...string) {
	f.Helper()
	secret := &corev1.Secret{StringData: map[string]string{
		"accessKeyID": "demo", "secretAccessKey": "only-for-trying-out", "endpoint": endpoint,
	}}
	for i := 0; i < len(change); i += 2 {
		secret.StringData[change[i]] = change[i+1]
	}
	secret.Name, secret.Namespace = "slipway-backup", f.Namespace
	f.Eventually(func() error {
		old := &corev1.Secret{}
		if f.Get(secret.Name, old) != nil {
			return cluster.Create(f.Context(), secret.DeepCopy())
		}
		old.StringData = secret.StringData
		return cluster.Update(f.Context(), old)
	})
}

// tree runs a command of the demo on a volume, and returns what it prints.
func (f *fixture) tree(command, claim string) string {
	f.Helper()
	return f.Tree(command, claim)
}

// listed is the list of a volume, which must not be empty.
func (f *fixture) listed(claim string) string {
	f.Helper()
	list := f.tree("list", claim)
	if !strings.HasPrefix(list, `"`) {
		f.Fatalf("the volume %s is empty: %s", claim, list)
	}
	return list
}

// backup makes a Backup of the test's volume that runs by hand, changed as asked.
func (f *fixture) backup(name string, change ...func(*slipwayv1alpha1.BackupSpec)) *slipwayv1alpha1.Backup {
	f.Helper()
	b := &slipwayv1alpha1.Backup{Spec: slipwayv1alpha1.BackupSpec{
		Source: dataName, Schedule: "0 2 * * *", Destination: "s3://backups", RetentionPolicy: "30d",
	}}
	b.Name = name
	for _, c := range change {
		c(&b.Spec)
	}
	f.Create(b)
	return b
}

// backedUp makes a run, and waits until it has a verified copy.
func (f *fixture) backedUp(backup, name string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	f.StartRun(backup, name)
	r := f.Completed(name)
	if r.Status.Verification == nil || len(r.Status.Volumes) != 1 || !r.Status.Volumes[0].Verified || r.Status.Volumes[0].SnapshotID == "" {
		f.Fatalf("BackupRun %s is Completed, and its status does not say what was verified: %+v", name, r.Status)
	}
	return r
}

// restore makes a Restore into a new volume of the same name, changed as asked.
func (f *fixture) restore(name string, change ...func(*slipwayv1alpha1.RestoreSpec)) {
	f.Helper()
	ofBackup := func(spec *slipwayv1alpha1.RestoreSpec) { spec.Backup = &slipwayv1alpha1.LocalReference{Name: dataName} }
	f.StartRestore(name, dataSize, append([]func(*slipwayv1alpha1.RestoreSpec){ofBackup}, change...)...)
}

// waitBackup waits until every check of a Backup is content.
func (f *fixture) waitBackup(name string, checks ...func(*slipwayv1alpha1.Backup) error) *slipwayv1alpha1.Backup {
	f.Helper()
	b := &slipwayv1alpha1.Backup{}
	f.Eventually(func() error {
		if err := f.Get(name, b); err != nil {
			return err
		}
		for _, check := range checks {
			if err := check(b); err != nil {
				return err
			}
		}
		return nil
	})
	return b
}

// backupIs checks a condition of a Backup.
func backupIs(conditionType string, status metav1.ConditionStatus, reason string) func(*slipwayv1alpha1.Backup) error {
	return func(b *slipwayv1alpha1.Backup) error {
		c := meta.FindStatusCondition(b.Status.Conditions, conditionType)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition %s is %+v, want %s %s", conditionType, c, status, reason)
		}
		return nil
	}
}

// withData is a namespace with an S3 server, and a volume that holds a tree.
func withData(t *testing.T) (f *fixture, endpoint string) {
	t.Helper()
	f = newFixture(t)
	endpoint = f.StartS3()
	f.Claim(dataName, "", dataSize)
	f.tree("make", dataName)
	return f, endpoint
}
