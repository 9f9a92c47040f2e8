//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const (
	// dataName is the name of the volume that is backed up, and of its Backup.
	dataName = "shop-data"
	// s3Manifest is the S3 server of the demo, with the bucket "backups".
	s3Manifest = "../../config/samples/s3.yaml"
)

// startS3 starts an S3 server in the namespace of the test, and returns its address. The Secret slipway-backup holds the keys.
func (f *fixture) startS3() string {
	f.Helper()
	if cluster.S3Image == "" {
		f.Skip("S3_IMAGE names no image of an S3 server")
	}
	manifest, err := os.ReadFile(s3Manifest)
	if err != nil {
		f.Fatal(err)
	}
	file := f.TempDir() + "/s3.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(manifest), "versitygw:dev", cluster.S3Image)), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Kubectl("apply", "--server-side", "-f", file)
	f.Eventually(func() error {
		if ready := mustGet(f, "s3", &appsv1.Deployment{}).Status.ReadyReplicas; ready != 1 {
			return fmt.Errorf("%d pods of the S3 server are ready", ready)
		}
		return nil
	})
	return "http://s3." + f.Namespace + ".svc:7070"
}

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

// volume makes a PersistentVolumeClaim.
func (f *fixture) volume(name string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	claim.Name = name
	f.Create(claim)
}

// tree runs a command of the demo on a volume, and returns what it prints. See hack/demo/tree.go.
func (f *fixture) tree(command, claim string) string {
	f.Helper()
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "tree-"},
		Spec: batchv1.JobSpec{BackoffLimit: ptr(int32(0)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "tree", Image: cluster.DemoImage, Args: []string{"tree", command, "/data"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		}}},
	}
	f.Create(job)
	f.Eventually(func() error {
		if now := mustGet(f, job.Name, &batchv1.Job{}); now.Status.Succeeded != 1 {
			return fmt.Errorf("tree %s %s: %+v", command, claim, now.Status)
		}
		return nil
	})
	return f.Kubectl("logs", "job/"+job.Name)
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

// run makes a run of a Backup by hand.
func (f *fixture) run(backup, name string) {
	f.Helper()
	r := &slipwayv1alpha1.BackupRun{Spec: slipwayv1alpha1.BackupRunSpec{Backup: backup}}
	r.Name = name
	f.Create(r)
}

// ran waits until a run is in a phase, for a reason. It fails at once when the run ends otherwise.
func (f *fixture) ran(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	r := &slipwayv1alpha1.BackupRun{}
	f.Eventually(func() error {
		if err := f.Get(name, r); err != nil {
			return err
		}
		if got := r.Status; got.Phase != phase || got.Reason != reason {
			err := fmt.Errorf("BackupRun %s is %s (%s: %s), want %s %s", name, got.Phase, got.Reason, got.Message, phase, reason)
			if r.Ended() {
				f.Fatal(err)
			}
			return err
		}
		return nil
	})
	return r
}

// completed makes a run, and waits until it has a verified copy.
func (f *fixture) completed(backup, name string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	f.run(backup, name)
	r := f.ran(name, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	if r.Status.Verification == nil || len(r.Status.Volumes) != 1 || !r.Status.Volumes[0].Verified || r.Status.Volumes[0].SnapshotID == "" {
		f.Fatalf("BackupRun %s is Completed, and its status does not say what was verified: %+v", name, r.Status)
	}
	return r
}

// restore makes a Restore into a new volume of the same name, changed as asked.
func (f *fixture) restore(name string, change ...func(*slipwayv1alpha1.RestoreSpec)) {
	f.Helper()
	r := &slipwayv1alpha1.Restore{Spec: slipwayv1alpha1.RestoreSpec{
		Backup: &slipwayv1alpha1.LocalReference{Name: dataName},
		Target: slipwayv1alpha1.RestoreTarget{Claim: name, Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse("1Gi")}},
	}}
	r.Name = name
	for _, c := range change {
		c(&r.Spec)
	}
	f.Create(r)
}

// restored waits until a Restore is in a phase, for a reason. It fails at once when it ends otherwise.
func (f *fixture) restored(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.Restore {
	f.Helper()
	r := &slipwayv1alpha1.Restore{}
	f.Eventually(func() error {
		if err := f.Get(name, r); err != nil {
			return err
		}
		if got := r.Status; got.Phase != phase || got.Reason != reason {
			err := fmt.Errorf("Restore %s is %s (%s: %s), want %s %s", name, got.Phase, got.Reason, got.Message, phase, reason)
			if r.Ended() {
				f.Fatal(err)
			}
			return err
		}
		return nil
	})
	return r
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
	endpoint = f.startS3()
	f.volume(dataName)
	f.tree("make", dataName)
	return f, endpoint
}
