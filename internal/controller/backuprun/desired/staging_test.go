package desired_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// stagingInput is what a case of testdata/staging says.
type stagingInput struct {
	Backup   *slipwayv1alpha1.Backup        `json:"backup"`
	Source   *corev1.PersistentVolumeClaim  `json:"source"`
	Snapshot *volumesnapshot.VolumeSnapshot `json:"snapshot"`
	Class    string                         `json:"class"`
	Live     bool                           `json:"live"`
}

// Each case's input is testdata/staging/<name>.in.yaml; the VolumeSnapshot, the claim and the Job that it leads to are in
// testdata/staging/<name>.out.yaml.
func TestWhatARunReadsFromASnapshotWith(t *testing.T) {
	golden.Cases(t, "testdata/staging", renderStaging)
}

func renderStaging(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in stagingInput
	if err := yaml.UnmarshalStrict(raw, &in); err != nil {
		t.Fatal(err)
	}
	in.Backup.Namespace, in.Backup.UID = "team", "backup-uid"
	run := &slipwayv1alpha1.BackupRun{}
	run.Name, run.Namespace, run.UID = "shop-29630520", "team", "run-uid"
	in.Snapshot.UID, in.Snapshot.CreationTimestamp = "snapshot-uid", metav1.NewTime(time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC))
	place, err := mover.ParseDestination(in.Backup.Spec.Destination)
	if err != nil {
		t.Fatal(err)
	}
	job, err := desired.Job(desired.Inputs{
		Run: run, Backup: in.Backup, Place: place, Image: "slipway-backup:1", Claim: in.Source.Name, Attempt: 2,
		RepositoryID: "repo", Deadline: time.Hour, Snapshot: in.Snapshot, Live: in.Live, NoSnapshot: "not told: one was taken",
	})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, object := range []any{
		desired.VolumeSnapshot(run, 0, 2, in.Source.Name, in.Class, in.Live),
		desired.StagedClaim(run, in.Snapshot, in.Source),
		job,
	} {
		out, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text += "---\n" + string(out)
	}
	return text
}

func TestAClaimIsOfASnapshotOnlyIfItIsMadeFromIt(t *testing.T) {
	group, other := "snapshot.storage.k8s.io", "other"
	tests := map[string]struct {
		from *corev1.TypedLocalObjectReference
		want bool
	}{
		"made from it":        {&corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "s"}, true},
		"made from nothing":   {nil, false},
		"from another one":    {&corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "t"}, false},
		"from a claim":        {&corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "s"}, false},
		"of another group":    {&corev1.TypedLocalObjectReference{APIGroup: &other, Kind: "VolumeSnapshot", Name: "s"}, false},
		"without any group":   {&corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "s"}, false},
		"of a kind like that": {&corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshots", Name: "s"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
				DataSource: tc.from, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			}}
			if got := desired.IsOf(claim, "s"); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
