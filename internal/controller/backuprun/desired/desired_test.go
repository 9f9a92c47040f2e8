package desired_test

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// input is what a case of testdata says.
type input struct {
	Backup       *slipwayv1alpha1.Backup `json:"backup"`
	Volume       int                     `json:"volume"`
	Claim        string                  `json:"claim"`
	Attempt      int32                   `json:"attempt"`
	RepositoryID string                  `json:"repositoryID"`
	Node         string                  `json:"node"`
	Identity     struct {
		Root   bool    `json:"root"`
		User   int64   `json:"user"`
		Group  int64   `json:"group"`
		Groups []int64 `json:"groups"`
	} `json:"identity"`
	// Dump reports whether the Job is for spec.dump. Container is that of the source, and PullSecrets are its pods'.
	Dump        bool                          `json:"dump"`
	Container   *corev1.Container             `json:"container"`
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets"`
}

// Each case's input is testdata/<name>.in.yaml; what it leads to is testdata/<name>.out.yaml.
func TestWhatARunLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", render)
}

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
	run := &slipwayv1alpha1.BackupRun{}
	run.Name, run.Namespace, run.UID = "shop-29630520", "team", "run-uid"
	place, err := mover.ParseDestination(in.Backup.Spec.Destination)
	if err != nil {
		t.Fatal(err)
	}
	var dump *mover.DumpContainer
	if in.Dump {
		dump = desired.Dump(in.Backup, in.Container, in.PullSecrets)
	}
	job, err := desired.Job(desired.Inputs{
		Dump: dump,
		Run:  run, Backup: in.Backup, Place: place, Image: "slipway-backup:1", Volume: in.Volume, Claim: in.Claim, Attempt: in.Attempt,
		RepositoryID: in.RepositoryID, Node: in.Node, Deadline: time.Hour,
		Identity: mover.Identity{Root: in.Identity.Root, User: in.Identity.User, Group: in.Identity.Group, Groups: in.Identity.Groups},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
