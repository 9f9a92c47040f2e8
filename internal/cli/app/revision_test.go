package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

func TestDiffRevisions(t *testing.T) {
	cpu := func(quantity string) *slipwayv1alpha1.ResourceRequirements {
		return &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}}
	}
	secret := []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
	cases := map[string]struct {
		from, to func(*desired.Revision)
		want     []specChange
	}{
		"nothing": {},
		"image and variables, the image first": {
			to: func(r *desired.Revision) {
				r.Spec.Image = "shop:2"
				r.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"A": "x"}
			},
			want: []specChange{
				{Field: "image", From: `"registry.example.com/shop:1.4.2"`, To: `"shop:2"`},
				{Field: "env.A", To: `"x"`},
				{Field: "env.LOG_LEVEL", From: `"info"`},
			},
		},
		"an empty value is a value": {
			to:   func(r *desired.Revision) { r.Spec.Env["EMPTY"] = "" },
			want: []specChange{{Field: "env.EMPTY", To: `""`}},
		},
		"a list as a whole": {
			from: func(r *desired.Revision) { r.Spec.Args = []string{"a", "b"} },
			to:   func(r *desired.Revision) { r.Spec.Args = []string{"b", "a"} },
			want: []specChange{{Field: "args", From: `["a","b"]`, To: `["b","a"]`}},
		},
		"the same quantity in other words": {
			from: func(r *desired.Revision) { r.Spec.Resources = cpu("1000m") },
			to:   func(r *desired.Revision) { r.Spec.Resources = cpu("1") },
		},
		"a quantity": {
			from: func(r *desired.Revision) { r.Spec.Resources = cpu("100m") },
			to:   func(r *desired.Revision) { r.Spec.Resources = cpu("1") },
			want: []specChange{{Field: "resources.requests.cpu", From: `"100m"`, To: `"1"`}},
		},
		"content of a Secret": {
			from: func(r *desired.Revision) { r.ConfigHash = "a" },
			to:   func(r *desired.Revision) { r.ConfigHash = "b" },
			want: []specChange{{Field: configContent}},
		},
		"a new reference brings new content with it": {
			to:   func(r *desired.Revision) { r.Spec.EnvFrom, r.ConfigHash = secret, "b" },
			want: []specChange{{Field: "envFrom", To: `[{"secretRef":{"name":"db"}}]`}},
		},
		"where the volume is, not how big": {
			to: func(r *desired.Revision) {
				r.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data", Size: resource.MustParse("1Gi")}
			},
			want: []specChange{{Field: "storage.mountPath", To: `"/data"`}},
		},
		"what pods do not depend on": {
			to: func(r *desired.Revision) { r.Spec.Replicas, r.Spec.Paused = new(int32(9)), true },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := stored(1, "a", time.Hour, tc.from), stored(2, "b", 0, tc.to)
			if diff := cmp.Diff(tc.want, diffRevisions(from.Revision, to.Revision)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// stored returns a revision of clitest.ReadyApp's spec, with the given changes.
func stored(number int64, name string, created time.Duration, change func(*desired.Revision)) revision {
	r := revision{Number: number, Name: name, Created: clitest.Ago(created), Revision: desired.RevisionOf(clitest.ReadyApp().Spec, "")}
	if change != nil {
		change(&r.Revision)
	}
	return r
}
