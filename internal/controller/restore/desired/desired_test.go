package desired_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/restore/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// input is what a case of testdata says.
type input struct {
	Restore      *slipwayv1alpha1.Restore `json:"restore"`
	Place        string                   `json:"place"`
	RepositoryID string                   `json:"repositoryID"`
	Snapshot     string                   `json:"snapshot"`
	Volume       string                   `json:"volume"`
	Attempt      int32                    `json:"attempt"`
	Node         string                   `json:"node"`
	Identity     struct {
		Root   bool    `json:"root"`
		User   int64   `json:"user"`
		Group  int64   `json:"group"`
		Groups []int64 `json:"groups"`
	} `json:"identity"`
}

// Each case's input is testdata/<name>.in.yaml; what it leads to is testdata/<name>.out.yaml.
func TestWhatARestoreLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", render)
}

// render returns the volume, if there is one to make, and the Job.
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
	in.Restore.Namespace, in.Restore.UID = "team", "restore-uid"
	place, err := mover.ParseDestination(in.Place)
	if err != nil {
		t.Fatal(err)
	}
	job, err := desired.Job(desired.Inputs{
		Restore: in.Restore, Place: place, RepositoryID: in.RepositoryID, Encryption: "shop-encryption", Credentials: "slipway-backup",
		Snapshot: in.Snapshot, Volume: in.Volume, Image: "slipway-backup:1", Attempt: in.Attempt, Node: in.Node, Deadline: time.Hour,
		Identity: mover.Identity{Root: in.Identity.Root, User: in.Identity.User, Group: in.Identity.Group, Groups: in.Identity.Groups},
	})
	if err != nil {
		t.Fatal(err)
	}
	objects := []any{job}
	if claim := desired.Claim(in.Restore); claim != nil {
		objects = []any{claim, job}
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
