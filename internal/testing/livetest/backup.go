package livetest

import (
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// s3Manifest is the S3 server of the demo, with the bucket "backups", as a suite in test finds it.
const s3Manifest = "../../config/samples/s3.yaml"

// StartS3 starts an S3 server in the namespace of the test, and returns its address. The Secret slipway-backup holds its keys.
func (f *Fixture) StartS3() string {
	f.Helper()
	if f.Cluster.S3Image == "" {
		f.Fatal("S3_IMAGE names no image of an S3 server")
	}
	manifest, err := os.ReadFile(s3Manifest)
	if err != nil {
		f.Fatal(err)
	}
	file := f.TempDir() + "/s3.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(manifest), "versitygw:dev", f.Cluster.S3Image)), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Kubectl("apply", "--server-side", "-f", file)
	f.Eventually(func() error {
		if ready := MustGet(f, "s3", &appsv1.Deployment{}).Status.ReadyReplicas; ready != 1 {
			return fmt.Errorf("%d pods of the S3 server are ready", ready)
		}
		return nil
	})
	return "http://s3." + f.Namespace + ".svc:7070"
}

// Claim makes a PersistentVolumeClaim, of the default StorageClass where none is named.
func (f *Fixture) Claim(name, class, size string) {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: ClaimSpec(size)}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}
	f.Create(claim)
}

// ClaimSpec asks for a volume that one node may write to.
func ClaimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
	}
}

// Tree runs a command of the demo on a volume, and returns what it prints. See hack/demo/tree.go.
func (f *Fixture) Tree(command, claim string) string {
	f.Helper()
	never, yes, no := int32(0), true, false
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "tree-"},
		Spec: batchv1.JobSpec{BackoffLimit: &never, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "tree", Image: f.Cluster.DemoImage, Args: []string{"tree", command, "/data"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		}}},
	}
	f.Create(job)
	f.Eventually(func() error {
		if now := MustGet(f, job.Name, &batchv1.Job{}); now.Status.Succeeded != 1 {
			return fmt.Errorf("tree %s %s: %+v", command, claim, now.Status)
		}
		return nil
	})
	return f.Kubectl("logs", "job/"+job.Name)
}

// StartRun makes a run of a Backup by hand.
func (f *Fixture) StartRun(backup, name string) {
	f.Helper()
	f.Create(&slipwayv1alpha1.BackupRun{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slipwayv1alpha1.BackupRunSpec{Backup: backup},
	})
}

// Ran waits until a run is in a phase, for a reason. It fails at once when the run ends otherwise.
func (f *Fixture) Ran(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	run := &slipwayv1alpha1.BackupRun{}
	f.reaches(name, run, phase, reason, func() (slipwayv1alpha1.BackupPhase, string, string, bool) {
		return run.Status.Phase, run.Status.Reason, run.Status.Message, run.Ended()
	})
	return run
}

// Completed waits until a run has a verified copy.
func (f *Fixture) Completed(name string) *slipwayv1alpha1.BackupRun {
	f.Helper()
	return f.Ran(name, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
}

// StartRestore makes a Restore into a new volume of the same name, changed as asked.
func (f *Fixture) StartRestore(name, size string, change ...func(*slipwayv1alpha1.RestoreSpec)) {
	f.Helper()
	r := &slipwayv1alpha1.Restore{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: slipwayv1alpha1.RestoreSpec{
		Target: slipwayv1alpha1.RestoreTarget{Claim: name, Create: &slipwayv1alpha1.RestoreClaim{Size: resource.MustParse(size)}},
	}}
	for _, c := range change {
		c(&r.Spec)
	}
	f.Create(r)
}

// Restored waits until a Restore is in a phase, for a reason. It fails at once when it ends otherwise.
func (f *Fixture) Restored(name string, phase slipwayv1alpha1.BackupPhase, reason string) *slipwayv1alpha1.Restore {
	f.Helper()
	restore := &slipwayv1alpha1.Restore{}
	f.reaches(name, restore, phase, reason, func() (slipwayv1alpha1.BackupPhase, string, string, bool) {
		return restore.Status.Phase, restore.Status.Reason, restore.Status.Message, restore.Ended()
	})
	return restore
}

// reaches waits until an object is in a phase, for a reason.
func (f *Fixture) reaches(name string, object client.Object, phase slipwayv1alpha1.BackupPhase, reason string,
	state func() (phase slipwayv1alpha1.BackupPhase, reason, message string, ended bool),
) {
	f.Helper()
	f.Eventually(func() error {
		if err := f.Get(name, object); err != nil {
			return err
		}
		isIn, because, message, ended := state()
		if isIn == phase && because == reason {
			return nil
		}
		err := fmt.Errorf("%T %s is %s (%s: %s), want %s %s", object, name, isIn, because, message, phase, reason)
		if ended {
			f.Fatal(err)
		}
		return err
	})
}
