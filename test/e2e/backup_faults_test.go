//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

var errStillThere = errors.New("it is still there")

// None of these may ever be Completed: ran fails as soon as one is.
func testARunThatCannotSucceedSaysWhy(t *testing.T) {
	t.Parallel()
	f, endpoint := withData(t)
	f.Claim("empty", "", dataSize)
	f.tree("list", "empty") // binds it
	f.Claim("unreadable", "", dataSize)
	f.tree("lock", "unreadable")
	f.credentials(endpoint)
	secret := func(name string, change ...string) func(*slipwayv1alpha1.BackupSpec) {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{
			"accessKeyID": "demo", "secretAccessKey": "only-for-trying-out", "endpoint": endpoint,
		}}
		s.StringData[change[0]] = change[1]
		f.Create(s)
		return func(s *slipwayv1alpha1.BackupSpec) { s.Credentials = &slipwayv1alpha1.LocalReference{Name: name} }
	}
	// The key of a repository is derived from the password in 64 MiB of memory.
	little := func(s *slipwayv1alpha1.BackupSpec) {
		s.Mover = &slipwayv1alpha1.BackupMover{Resources: &slipwayv1alpha1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")},
		}}
	}
	tests := map[string]struct {
		change func(*slipwayv1alpha1.BackupSpec)
		phase  slipwayv1alpha1.BackupPhase
		reason string
		// says is part of the message.
		says string
	}{
		"wrong-secret":   {secret("wrong-secret", "secretAccessKey", "not-the-one"), slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonAccessDenied, ""},
		"wrong-id":       {secret("wrong-id", "accessKeyID", "nobody"), slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonAccessDenied, ""},
		"no-server":      {secret("no-server", "endpoint", strings.Replace(endpoint, ":7070", ":7071", 1)), slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying, "Unreachable"},
		"no-memory":      {little, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying, "OOMKilled"},
		"no-bucket":      {func(s *slipwayv1alpha1.BackupSpec) { s.Destination = "s3://nowhere" }, slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonDestinationNotFound, ""},
		"empty-volume":   {func(s *slipwayv1alpha1.BackupSpec) { s.Source = "empty" }, slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonSourceEmpty, ""},
		"unreadable":     {func(s *slipwayv1alpha1.BackupSpec) { s.Source = "unreadable" }, slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonSourceUnreadable, "locked"},
		"no-volume":      {func(s *slipwayv1alpha1.BackupSpec) { s.Source = "nothing" }, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSourceNotFound, `"nothing"`},
		"no-credentials": {func(s *slipwayv1alpha1.BackupSpec) { s.Credentials = &slipwayv1alpha1.LocalReference{Name: "none"} }, slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonSecretNotFound, `"none"`},
	}
	for name, tc := range tests {
		f.backup(name, tc.change)
		f.StartRun(name, name)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			run := f.Ran(name, tc.phase, tc.reason)
			if !strings.Contains(run.Status.Message, tc.says) {
				t.Errorf("the message is %q, want one that says %q", run.Status.Message, tc.says)
			}
			if strings.Contains(run.Status.Message, "only-for-trying-out") {
				t.Errorf("the message holds a secret: %q", run.Status.Message)
			}
			backup := mustGet(f, name, &slipwayv1alpha1.Backup{})
			if backup.Status.LastBackupTime != nil || backup.Status.Phase == slipwayv1alpha1.BackupCompleted {
				t.Errorf("the Backup has a copy that there is not: %+v", backup.Status)
			}
		})
	}
}

// A Backup that worked stops to, says so, keeps the time of its good copy, and works again.
func testWhatIsTakenFromABackupIsTold(t *testing.T) {
	t.Parallel()
	s3 := newFixture(t)
	endpoint := s3.StartS3()
	f := newFixture(t)
	f.credentials(endpoint)
	f.Claim(dataName, "", dataSize)
	f.tree("make", dataName)
	f.backup(dataName)
	f.backedUp(dataName, "good")
	last := f.waitBackup(dataName,
		backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady),
		backupIs(slipwayv1alpha1.ConditionRetentionApplied, metav1.ConditionTrue, slipwayv1alpha1.ReasonRetentionApplied),
	).Status.LastBackupTime
	stays := func() {
		t.Helper()
		backup := f.waitBackup(dataName, backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRunFailed))
		if !backup.Status.LastBackupTime.Equal(last) {
			t.Errorf("lastBackupTime is %v, and the newest verified copy of %v", backup.Status.LastBackupTime, last)
		}
	}

	f.credentials(endpoint, "secretAccessKey", "revoked")
	f.StartRun(dataName, "revoked")
	f.Ran("revoked", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonAccessDenied)
	stays()
	f.credentials(endpoint)

	password := f.changePassword("another")
	f.StartRun(dataName, "another-password")
	f.Ran("another-password", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonWrongPassword)
	stays()
	f.changePassword(password)

	f.backedUp(dataName, "again")
	backup := f.waitBackup(dataName, backupIs(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady))
	if !backup.Status.LastBackupTime.After(last.Time) || backup.Status.ConsecutiveFailures != 0 {
		t.Errorf("after it works again the status is %+v", backup.Status)
	}
}

// changePassword replaces the password of the test's Backup, and returns the one before.
func (f *fixture) changePassword(password string) (before string) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: dataName + "-encryption", Namespace: f.Namespace}}
	update(f, secret, func(s *corev1.Secret) {
		before = string(s.Data["password"])
		s.Data["password"] = []byte(password)
	})
	return before
}
