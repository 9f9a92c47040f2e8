package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func TestPlanRollback(t *testing.T) {
	withHash := func(hash string) []revision {
		revisions := past()
		revisions[1].ConfigHash = hash
		return revisions
	}
	withVolume := past()
	withVolume[1].Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
	withVolumeLast := past()
	withVolumeLast[2].Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
	cases := map[string]struct {
		app       *slipwayv1alpha1.WebApp
		revisions []revision
		to        string
		hash      string
		want      int64
		wantNote  string
		wantErr   string
	}{
		"the one before the current one":      {app: clitest.ReadyApp(), want: 4},
		"after a rollback, the one that runs": {app: clitest.ReadyApp(clitest.RolledBack), want: 5},
		"by number":                           {app: clitest.ReadyApp(), to: "3", want: 3},
		"by name":                             {app: clitest.ReadyApp(), to: "shop-1111111111", want: 3},
		"an unknown one":                      {app: clitest.ReadyApp(), to: "9", wantErr: `webapp/shop has no revision "9"; there are 3 (shop-1111111111), 4 (shop-2222222222), 5 (shop-3f0c9a1b2c)`},
		"the current one":                     {app: clitest.ReadyApp(), to: "5", wantErr: "nothing to roll back: the spec of webapp/shop already asks for revision 5 (shop-3f0c9a1b2c)"},
		"only the current one":                {app: clitest.ReadyApp(), revisions: past()[2:], wantErr: "no revision before the current one; there is only 5 (shop-3f0c9a1b2c)"},
		"not the current one in other words": {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Resources, a.Spec.ImagePullSecrets = &slipwayv1alpha1.ResourceRequirements{}, []slipwayv1alpha1.LocalReference{}
		}), want: 4},
		"not the current one with a volume":       {app: clitest.ReadyApp(), revisions: withVolumeLast, want: 4},
		"none at all":                             {app: clitest.ReadyApp(), revisions: []revision{}, wantErr: "nothing has rolled out completely yet"},
		"other content of its Secrets":            {app: clitest.ReadyApp(), revisions: withHash("then"), hash: "now", want: 4, wantNote: "their content is not part of a rollback, and it has changed"},
		"the same content":                        {app: clitest.ReadyApp(), revisions: withHash("now"), hash: "now", want: 4},
		"only the content differs":                {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "registry.example.com/shop:1.4.1" }), revisions: withHash("then"), hash: "now", to: "4", wantErr: "has changed since, and cannot be rolled back"},
		"a volume that is not in the spec":        {app: clitest.ReadyApp(), revisions: withVolume, want: 4, wantNote: "That revision had a volume at /data"},
		"a volume that the revision did not have": {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/d"} }), to: "4", want: 4, wantNote: "stays"},
		"a paused one":                            {app: clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) { a.Spec.Paused = true }), want: 4, wantNote: "spec.paused is set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.revisions == nil {
				tc.revisions = past()
			}
			plan, err := planRollback(tc.app, tc.revisions, tc.to, tc.hash)
			switch {
			case tc.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %v, want an error with %q", err, tc.wantErr)
				}
				return
			case err != nil:
				t.Fatal(err)
			case plan.Number != tc.want:
				t.Errorf("rolls back to %d, want %d", plan.Number, tc.want)
			}
			if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, tc.wantNote) || (tc.wantNote == "") != (notes == "") {
				t.Errorf("notes %q, want %q", notes, tc.wantNote)
			}
		})
	}
}

// TestMergeRevision proves that a rollback touches what a revision holds and nothing else.
func TestMergeRevision(t *testing.T) {
	now := clitest.ReadyApp(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Paused = true
		app.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 9}
		app.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: slipwayv1alpha1.FailurePolicyHold}
		app.Spec.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("10Gi"), MountPath: "/new", DeletionPolicy: slipwayv1alpha1.DeletionPolicyRetain}
		app.Spec.Args = []string{"--new"}
		app.Spec.ServiceAccountName = "new"
	}).Spec
	then := clitest.ReadyApp(func(app *slipwayv1alpha1.WebApp) {
		app.Spec.Image, app.Spec.Port = "shop:1", 80
		app.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"OLD": "1"}
		app.Spec.Command = []string{"/old"}
		app.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "/old"}
		app.Spec.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/old"}
	}).Spec
	before := now.DeepCopy()
	got := mergeRevision(now, revision{Revision: desired.RevisionOf(then, "")})

	want := *then.DeepCopy()
	want.Replicas, want.Paused, want.Autoscaling, want.Rollout = now.Replicas, true, now.Autoscaling, now.Rollout
	want.Storage = now.Storage.DeepCopy()
	want.Storage.MountPath = "/old"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(*before, now); diff != "" {
		t.Errorf("the spec it was given has changed:\n%s", diff)
	}
}

func TestRollbackPatch(t *testing.T) {
	app := clitest.ReadyApp()
	plan, err := planRollback(app, past(), "3", "")
	if err != nil {
		t.Fatal(err)
	}
	patch, err := rollbackPatch(app.Spec, plan.Spec, "77")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"resourceVersion":"77"},"spec":{"env":null,"image":"registry.example.com/shop:1.4.0"}}`
	if string(patch) != want {
		t.Errorf("got  %s\nwant %s", patch, want)
	}
}

func TestPrintRollback(t *testing.T) {
	plan, err := planRollback(clitest.ReadyApp(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Paused = true
		a.Spec.Args = []string{strings.Repeat("long ", 40)}
	}), past(), "3", "")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "rollback/done.txt", func(out *bytes.Buffer) error { return printRollback(out, plan) })
	plan.DryRun = true
	clitest.Golden(t, "rollback/dry-run.txt", func(out *bytes.Buffer) error { return printRollback(out, plan) })
	clitest.Golden(t, "rollback/dry-run.json", func(out *bytes.Buffer) error {
		output := command.FormatJSON
		return output.Print(out, plan)
	})
}
