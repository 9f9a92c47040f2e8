package desired_test

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// input is what a case of testdata says.
type input struct {
	Backup *slipwayv1alpha1.Backup `json:"backup"`
	// Maintain reports whether unused space is to be freed, and Delete whether the repository is to be deleted.
	Maintain bool `json:"maintain"`
	Delete   bool `json:"delete"`
	// Drill asks for the Job of a drill, and Gone reports whether the volumes of the source are gone.
	Drill bool `json:"drill"`
	Gone  bool `json:"gone"`
}

var slot = time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)

// Each case's input is testdata/<name>.in.yaml; what it leads to is testdata/<name>.out.yaml.
func TestWhatABackupLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", render)
}

// render returns the run for a slot, and the Job that works on the repository, if there is one to make.
func render(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		t.Fatal(err)
	}
	in.Backup.Namespace, in.Backup.UID = "team", "backup-uid"
	if in.Drill {
		return drillOf(t, in)
	}
	objects := []any{desired.Run(in.Backup, slot)}
	name, steps := desired.KeepName(in.Backup, "shop-run"), desired.KeepSteps(in.Backup, in.Maintain)
	if in.Delete {
		name, steps = in.Backup.Name+"-delete", []mover.Step{mover.StepDelete}
	}
	if len(steps) > 0 {
		objects = append(objects, jobOf(t, in.Backup, name, steps))
	}
	var out strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text))
	}
	return out.String()
}

// drillOf returns the Job of the second attempt of a drill of two volumes.
func drillOf(t *testing.T, in input) string {
	t.Helper()
	place, err := mover.ParseDestination(in.Backup.Spec.Destination)
	if err != nil {
		t.Fatal(err)
	}
	run := &slipwayv1alpha1.BackupRun{}
	run.Name, run.UID = "shop-29626680", "run-uid"
	claims := map[string]*corev1.PersistentVolumeClaim{}
	read := metav1.NewTime(slot)
	for i, name := range []string{"shop-data", "shop-index"} {
		run.Status.Volumes = append(run.Status.Volumes, slipwayv1alpha1.BackupVolume{
			Claim: name, SnapshotID: "snapshot-of-" + name, SourceTime: &read, ManifestDigest: "digest-of-" + name, Bytes: 1 << 30,
		})
		if in.Gone {
			continue
		}
		class := []string{"fast", "slow"}[i]
		claims[name] = &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		}}
	}
	job, err := desired.DrillJob(desired.DrillInputs{
		Backup: in.Backup, Place: place, Image: "slipway-backup:1", Drill: desired.DrillOfSlot(in.Backup, slot), Attempt: 2, Number: 7,
		Run: run, NotBefore: slot, Claims: claims, Deadline: time.Hour,
		Identity: mover.Identity{User: 1000, Groups: []int64{2000}}.As(in.Backup.Spec.Mover),
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func jobOf(t *testing.T, backup *slipwayv1alpha1.Backup, name string, steps []mover.Step) any {
	t.Helper()
	place, err := mover.ParseDestination(backup.Spec.Destination)
	if err != nil {
		t.Fatal(err)
	}
	job, err := desired.Job(desired.Inputs{
		Backup: backup, Place: place, Image: "slipway-backup:1", Name: name, Steps: steps, Deadline: 2 * time.Hour,
		RepositoryID: backup.Status.RepositoryID,
	})
	if err != nil {
		t.Fatal(err)
	}
	return job
}
