//go:build e2e

package truth

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// dataName is that of a volume, of its Backup and of what is restored.
	dataName = "data"
	dataSize = "1Gi"
	// keysName is that of the Secret with the keys of the S3 server: the default of a Backup.
	keysName = "slipway-backup"
)

var (
	theBackup  = &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: dataName}}
	theRun     = &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
	theRestore = &slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: dataName}}
)

type backupEdit = func(*slipwayv1alpha1.BackupSpec)

// backingUp creates a Backup of the volume, changed as asked.
func backingUp(edits ...backupEdit) func(*trial) {
	return func(f *trial) {
		backup := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: dataName}, Spec: slipwayv1alpha1.BackupSpec{
			Source: dataName, Schedule: "0 2 * * *", Destination: "s3://backups",
		}}
		for _, edit := range edits {
			edit(&backup.Spec)
		}
		f.Create(backup)
	}
}

func editingBackup(edits ...backupEdit) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, dataName, &slipwayv1alpha1.Backup{}, func(backup *slipwayv1alpha1.Backup) {
			for _, edit := range edits {
				edit(&backup.Spec)
			}
		})
	}
}

// keys is the Secret with the keys of an S3 server that nobody asks.
func keys() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: keysName}, StringData: map[string]string{
		"accessKeyID": "demo", "secretAccessKey": "only-for-trying-out", "endpoint": "http://nowhere.invalid:7070",
	}}
}

func from(source string) backupEdit {
	return func(s *slipwayv1alpha1.BackupSpec) { s.Source = source }
}

func to(destination string) backupEdit {
	return func(s *slipwayv1alpha1.BackupSpec) { s.Destination = destination }
}

// unready is what a subject without Degraded says that something is wrong with.
func unready(reason string, more ...claim) []claim {
	return append([]claim{{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: reason, named: true}}, more...)
}

// backupFaults are names in a Backup that lead nowhere. They are reported before any run, which may be months away.
func backupFaults() map[string]fault {
	return map[string]fault{
		"a Backup of a claim that does not exist": {
			subject: theBackup, usual: true,
			prepare: func(f *trial) { f.Create(keys()) }, cause: backingUp(),
			says:  unready(slipwayv1alpha1.ReasonSourceNotFound),
			names: []string{`PersistentVolumeClaim "data"`, "spec.source"},
			mend:  func(f *trial) { f.Claim(dataName, "", dataSize) },
		},
		"a Backup of an application that does not exist": {
			subject: theBackup,
			prepare: func(f *trial) { f.Create(keys()) }, cause: backingUp(from("webapp/shop")),
			says:  unready(slipwayv1alpha1.ReasonSourceNotFound),
			names: []string{`"shop"`, "spec.source"},
			mend:  creating(),
			good: func(o client.Object) bool {
				_, ok := o.(*appsv1.Deployment)
				return ok
			},
		},
		"a Backup without the Secret of its bucket": {
			subject: theBackup,
			prepare: func(f *trial) { f.Claim(dataName, "", dataSize) }, cause: backingUp(),
			says:  unready(slipwayv1alpha1.ReasonSecretNotFound),
			names: []string{`Secret "slipway-backup"`, "spec.credentials"},
			mend:  func(f *trial) { f.Create(keys()) },
		},
		"a Backup whose Secret lacks a key": {
			subject: theBackup,
			prepare: func(f *trial) {
				f.Claim(dataName, "", dataSize)
				f.Create(secret(keysName, "accessKeyID"))
			},
			cause: backingUp(),
			says:  unready(slipwayv1alpha1.ReasonKeyNotFound),
			names: []string{`Secret "slipway-backup"`, `"secretAccessKey"`, "spec.credentials"},
			mend: func(f *trial) {
				livetest.Update(f.Fixture, keysName, &corev1.Secret{}, func(s *corev1.Secret) { s.StringData = keys().StringData })
			},
		},
		"a Backup to a claim that does not exist": {
			subject: theBackup,
			prepare: func(f *trial) { f.Claim(dataName, "", dataSize) }, cause: backingUp(to("pvc://copies")),
			says:  unready(slipwayv1alpha1.ReasonDestinationNotFound),
			names: []string{`PersistentVolumeClaim "copies"`, "spec.destination"},
			mend:  func(f *trial) { f.Claim("copies", "", dataSize) },
		},
		"a Backup with a class of pods that does not exist": {
			subject: theBackup,
			prepare: func(f *trial) {
				f.Claim(dataName, "", dataSize)
				f.Create(keys())
			},
			cause: backingUp(func(s *slipwayv1alpha1.BackupSpec) {
				s.Mover = &slipwayv1alpha1.BackupMover{PriorityClassName: "platinum"}
			}),
			says:  unready(slipwayv1alpha1.ReasonPriorityClassNotFound),
			names: []string{`PriorityClass "platinum"`, "spec.mover.priorityClassName"},
			mend:  editingBackup(func(s *slipwayv1alpha1.BackupSpec) { s.Mover = nil }),
		},
		"a drill on a class of volumes that does not exist": {
			subject: theBackup,
			prepare: func(f *trial) {
				f.Claim(dataName, "", dataSize)
				f.Create(keys())
			},
			cause: backingUp(func(s *slipwayv1alpha1.BackupSpec) {
				s.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{
					Schedule: "0 3 * * *", Scratch: &slipwayv1alpha1.DrillScratch{StorageClassName: ptr("platinum")},
				}}
			}),
			says:  unready(slipwayv1alpha1.ReasonStorageClassNotFound),
			names: []string{`StorageClass "platinum"`, "spec.verify.drill.scratch.storageClassName"},
			mend:  editingBackup(func(s *slipwayv1alpha1.BackupSpec) { s.Verify = nil }),
		},
	}
}

// serveCopies starts an S3 server, and makes a volume with files.
func (f *trial) serveCopies() {
	f.Helper()
	f.StartS3()
	f.Claim(dataName, "", dataSize)
	f.Tree("make", dataName)
}

// failed tells a run of a name that has failed, and completed one that has a copy.
func failed(name string) func(client.Object) bool {
	return func(o client.Object) bool {
		run, ok := o.(*slipwayv1alpha1.BackupRun)
		return ok && run.Name == name && run.Status.Phase == slipwayv1alpha1.BackupFailed
	}
}

func completed(name string) func(client.Object) bool {
	return func(o client.Object) bool {
		run, ok := o.(*slipwayv1alpha1.BackupRun)
		return ok && run.Name == name && run.Status.Phase == slipwayv1alpha1.BackupCompleted
	}
}

// running makes a run by hand.
func running(name string) func(*trial) {
	return func(f *trial) { f.StartRun(dataName, name) }
}

func both(first, second func(*trial)) func(*trial) {
	return func(f *trial) { first(f); second(f) }
}

// changing changes a key of a Secret.
func changing(name, key, value string) func(*trial) {
	return func(f *trial) {
		livetest.Update(f.Fixture, name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data[key] = []byte(value) })
	}
}

// copyFaults are those that only a run can find.
func copyFaults() map[string]fault {
	const right = "only-for-trying-out"
	start := func(f *trial) { f.serveCopies(); backingUp()(f) }
	return map[string]fault{
		"a bucket that does not exist": {
			subject: theBackup, start: start, cause: both(editingBackup(to("s3://nowhere")), running("run")), known: failed("run"),
			says:  unready(slipwayv1alpha1.ReasonRunFailed),
			names: []string{slipwayv1alpha1.ReasonDestinationNotFound, `"nowhere"`, "spec.destination"},
			mend:  both(editingBackup(to("s3://backups")), running("again")), good: completed("again"),
		},
		"keys that the server refuses": {
			subject: theBackup, start: start, cause: both(changing(keysName, "secretAccessKey", "another"), running("run")), known: failed("run"),
			says:  unready(slipwayv1alpha1.ReasonRunFailed),
			names: []string{slipwayv1alpha1.ReasonAccessDenied, `Secret "slipway-backup"`, "spec.credentials"},
			mend:  both(changing(keysName, "secretAccessKey", right), running("again")), good: completed("again"),
		},
		"a password that does not open the copies": {
			subject: theBackup,
			start: func(f *trial) {
				start(f)
				running("first")(f)
				f.Completed("first")
			},
			cause: func(f *trial) {
				livetest.Update(f.Fixture, "data-encryption", &corev1.Secret{}, func(s *corev1.Secret) {
					s.Data["before"], s.Data["password"] = s.Data["password"], []byte("another")
				})
				running("run")(f)
			},
			known: failed("run"),
			says:  unready(slipwayv1alpha1.ReasonRunFailed),
			names: []string{slipwayv1alpha1.ReasonWrongPassword, `Secret "data-encryption"`, "spec.encryption"},
			mend: func(f *trial) {
				livetest.Update(f.Fixture, "data-encryption", &corev1.Secret{}, func(s *corev1.Secret) { s.Data["password"] = s.Data["before"] })
				running("again")(f)
			},
			good: completed("again"),
		},
		"a path to copy that is not there": {
			subject: theBackup, start: start, known: failed("run"),
			cause: both(editingBackup(func(s *slipwayv1alpha1.BackupSpec) { s.Include = []slipwayv1alpha1.BackupPath{"nothere"} }), running("run")),
			says:  unready(slipwayv1alpha1.ReasonRunFailed),
			names: []string{slipwayv1alpha1.ReasonPathNotFound, `"nothere"`, "spec.include"},
			mend:  both(editingBackup(func(s *slipwayv1alpha1.BackupSpec) { s.Include = nil }), running("again")), good: completed("again"),
		},
		"a run of an application without a volume": {
			subject: theRun,
			prepare: func(f *trial) { f.Create(keys(), f.app()); backingUp(from("webapp/shop"))(f) },
			cause:   running("run"),
			says:    unready(slipwayv1alpha1.ReasonSourceHasNoVolume),
			names:   []string{`"shop"`, "spec.source"},
		},
		"a run whose server does not answer": {
			subject: theRun, prepare: start,
			cause: func(f *trial) {
				livetest.Update(f.Fixture, keysName, &corev1.Secret{}, func(s *corev1.Secret) {
					s.Data["endpoint"] = []byte(strings.Replace(string(s.Data["endpoint"]), ":7070", ":7071", 1))
				})
				running("run")(f)
			},
			known: func(o client.Object) bool {
				run, ok := o.(*slipwayv1alpha1.BackupRun)
				return ok && run.Status.Reason == slipwayv1alpha1.ReasonRetrying
			},
			says:  unready(slipwayv1alpha1.ReasonRetrying),
			names: []string{slipwayv1alpha1.ReasonUnreachable},
		},
	}
}

// restoreFaults are names in a Restore that lead nowhere.
func restoreFaults() map[string]fault {
	restoring := func(spec slipwayv1alpha1.RestoreSpec) func(*trial) {
		return func(f *trial) {
			f.Create(&slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: dataName}, Spec: spec})
		}
	}
	target := slipwayv1alpha1.RestoreTarget{Claim: dataName}
	return map[string]fault{
		"a Restore of a Backup that does not exist": {
			subject: theRestore,
			prepare: func(f *trial) { f.Claim(dataName, "", dataSize) },
			cause:   restoring(slipwayv1alpha1.RestoreSpec{Backup: &slipwayv1alpha1.LocalReference{Name: "none"}, Target: target}),
			says:    unready(slipwayv1alpha1.ReasonBackupNotFound),
			names:   []string{`Backup "none"`, "spec.backup"},
		},
		"a Restore to a claim that does not exist": {
			subject: theRestore,
			prepare: func(f *trial) { f.Create(keys(), secret("password", "password")) },
			cause: restoring(slipwayv1alpha1.RestoreSpec{Target: target, Repository: &slipwayv1alpha1.RestoreRepository{
				Destination: "s3://backups/team/data", Encryption: slipwayv1alpha1.LocalReference{Name: "password"},
			}}),
			says:  unready(slipwayv1alpha1.ReasonTargetNotFound),
			names: []string{`PersistentVolumeClaim "data"`, "spec.target.claim"},
		},
		"a Restore of a run that does not exist": {
			subject: theRestore,
			prepare: func(f *trial) { f.Claim(dataName, "", dataSize) },
			cause:   restoring(slipwayv1alpha1.RestoreSpec{Run: &slipwayv1alpha1.LocalReference{Name: "none"}, Target: target}),
			says:    unready(slipwayv1alpha1.ReasonRunNotFound),
			names:   []string{`BackupRun "none"`, "spec.run"},
		},
	}
}
