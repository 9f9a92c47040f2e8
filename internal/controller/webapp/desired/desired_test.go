package desired_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// Each case's input is testdata/<name>.in.yaml, a WebApp; what it leads to is
// testdata/<name>.out.yaml.
func TestWhatAWebAppLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", func(t *testing.T, input string) string { return render(t, read(t, input)) })
}

func read(t *testing.T, path string) *slipwayv1alpha1.WebApp {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	app := &slipwayv1alpha1.WebApp{}
	if err := yaml.UnmarshalStrict(raw, app); err != nil {
		t.Fatal(err)
	}
	app.Namespace, app.UID = "team", "0000-uid"
	return app
}

// render writes every object that a WebApp leads to as one YAML document each.
func render(t *testing.T, app *slipwayv1alpha1.WebApp) string {
	t.Helper()
	in := desired.Inputs{App: app, Revision: desired.RevisionOf(app.Spec, "")}
	if len(app.Spec.EnvFrom)+len(app.Spec.Files) > 0 {
		in.Revision.ConfigHash, in.ConfigVersions = "c0ffee", `{"Secret/db":"7/c0ffee"}`
	}
	if app.Spec.Autoscaling == nil {
		replicas := desired.MinReplicas(app)
		in.Replicas = &replicas
	}
	applied, err := in.Revision.Applied(desired.NewTemplate(app, in.Revision))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(applied)
	if err != nil {
		t.Fatal(err)
	}
	revision := desired.ControllerRevision(app, revisionName(t, app, in.Revision.ConfigHash), data, 1)
	objects := []any{
		desired.Deployment(in), desired.Service(app, app.Spec.Port), desired.HorizontalPodAutoscaler(app),
		desired.PodDisruptionBudget(app), desired.PersistentVolumeClaim(app), revision,
	}
	var documents []string
	for _, object := range objects {
		raw, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); text != "null\n" {
			documents = append(documents, text)
		}
	}
	return strings.Join(documents, "---\n")
}

func shop(change ...func(*slipwayv1alpha1.WebAppSpec)) *slipwayv1alpha1.WebApp {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team"},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 8080},
	}
	for _, c := range change {
		c(&app.Spec)
	}
	return app
}

func TestARevisionIsNamedAfterItsPodTemplate(t *testing.T) {
	three := int32(3)
	storage := func(s *slipwayv1alpha1.WebAppSpec) {
		s.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/data"}
	}
	tests := map[string]struct {
		a, b *slipwayv1alpha1.WebApp
		same bool
	}{
		"nothing changed":       {shop(), shop(), true},
		"image":                 {shop(), shop(func(s *slipwayv1alpha1.WebAppSpec) { s.Image = "shop:2" }), false},
		"replicas":              {shop(), shop(func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = &three }), true},
		"paused":                {shop(), shop(func(s *slipwayv1alpha1.WebAppSpec) { s.Paused = true }), true},
		"rollout":               {shop(), shop(func(s *slipwayv1alpha1.WebAppSpec) { s.Rollout = &slipwayv1alpha1.Rollout{} }), true},
		"a default written out": {shop(), shop(func(s *slipwayv1alpha1.WebAppSpec) { s.ServiceAccountName = "" }), true},
		"size of the volume": {shop(storage), shop(storage, func(s *slipwayv1alpha1.WebAppSpec) {
			s.Storage.Size = resource.MustParse("2Gi")
		}), true},
		"same quantity, other spelling": {
			shop(func(s *slipwayv1alpha1.WebAppSpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1000m")}}
			}),
			shop(func(s *slipwayv1alpha1.WebAppSpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
			}),
			true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if a, b := revisionName(t, tc.a, ""), revisionName(t, tc.b, ""); (a == b) != tc.same {
				t.Errorf("names %q and %q, same: %v", a, b, tc.same)
			}
		})
	}
	if revisionName(t, shop(), "") == revisionName(t, shop(), "c0ffee") {
		t.Error("other configuration, same name")
	}
}

func revisionName(t *testing.T, app *slipwayv1alpha1.WebApp, configHash string) string {
	t.Helper()
	name, err := desired.RevisionOf(app.Spec, configHash).Name(app)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// What a failed rollout waits for: a change of what was asked, not of how many pods run it.
func TestIntentChangesWithWhatARolloutDependsOn(t *testing.T) {
	three, deadline := int32(3), int32(60)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.WebAppSpec)
		same   bool
	}{
		"replicas": {func(s *slipwayv1alpha1.WebAppSpec) { s.Replicas = &three }, true},
		"autoscaling": {func(s *slipwayv1alpha1.WebAppSpec) {
			s.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 3}
		}, true},
		"paused": {func(s *slipwayv1alpha1.WebAppSpec) { s.Paused = true }, true},
		"image":  {func(s *slipwayv1alpha1.WebAppSpec) { s.Image = "shop:2" }, false},
		"a longer deadline": {func(s *slipwayv1alpha1.WebAppSpec) {
			s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: &deadline}
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, err := desired.Intent(shop().Spec, "")
			if err != nil {
				t.Fatal(err)
			}
			after, err := desired.Intent(shop(tc.change).Spec, "")
			if err != nil {
				t.Fatal(err)
			}
			if (before == after) != tc.same {
				t.Errorf("intents %q and %q, same: %v", before, after, tc.same)
			}
		})
	}
}
