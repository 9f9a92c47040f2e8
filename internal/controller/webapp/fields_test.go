package webapp

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

func TestARefusalOfAChildNamesTheFieldOfTheWebApp(t *testing.T) {
	ref := &slipwayv1alpha1.LocalReference{Name: "x"}
	app := &slipwayv1alpha1.WebApp{Spec: slipwayv1alpha1.WebAppSpec{
		Image: "shop:1", Port: 8080,
		Env: map[string]slipwayv1alpha1.EnvValue{"B": "1", "D": "1"},
		EnvFrom: []slipwayv1alpha1.EnvFromSource{
			{SecretRef: ref}, {SecretRef: ref, Keys: []string{"A", "B", "C"}}, {ConfigMapRef: ref}, {ConfigMapRef: ref, Keys: []string{"C"}}, {SecretRef: ref, Prefix: "x", Keys: []string{"A"}},
		},
		Files:   []slipwayv1alpha1.FileSource{{SecretRef: ref, MountPath: "/a"}, {ConfigMapRef: ref, MountPath: "/b"}},
		Storage: &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/data"},
	}}
	s := &scope{app: app, target: namedRevision{name: "shop-1", Revision: desired.RevisionOf(app.Spec, "")}}
	s.template = desired.NewTemplate(app, s.target.Revision)
	const container = "spec.template.spec.containers[0]."
	tests := []struct{ kind, child, want string }{
		{"Deployment", container + "env[0].name", "spec.envFrom[1] (variable A)"},
		{"Deployment", container + "env[1].value", "spec.env.B"},
		{"Deployment", container + "env[2].valueFrom", "spec.envFrom[3] (variable C)"},
		{"Deployment", container + "env[3].name", "spec.env.D"},
		{"Deployment", container + "env[4].name", "spec.envFrom[4] (variable xA)"},
		{"Deployment", container + "env[5].name", container + "env[5].name"},
		{"Deployment", container + "envFrom[0].prefix", "spec.envFrom[0]"},
		{"Deployment", container + "envFrom[1].configMapRef.name", "spec.envFrom[2]"},
		{"Deployment", container + "resources.limits[memory]", "spec.resources.limits.memory"},
		{"Deployment", container + "resources.requests[example.com/gpu]", "spec.resources.requests.example.com/gpu"},
		{"Deployment", container + "resources.requests", "spec.resources"},
		{"Deployment", container + "resources", "spec.resources"},
		{"Deployment", container + "image", "spec.image"},
		{"Deployment", container + "command[0]", "spec.command"},
		{"Deployment", container + "ports[0].containerPort", "spec.port"},
		{"Deployment", container + "readinessProbe.httpGet.path", "spec.health.path"},
		{"Deployment", container + "startupProbe.timeoutSeconds", "spec.health.timeoutSeconds"},
		{"Deployment", container + "volumeMounts[1].mountPath", "spec.files[1]"},
		{"Deployment", container + "volumeMounts[2].mountPath", "spec.storage"},
		{"Deployment", "spec.template.spec.volumes[0].secret.items[0].path", "spec.files[0]"},
		{"Deployment", "spec.template.spec.volumes[9].name", "spec.template.spec.volumes[9].name"},
		{"Deployment", "spec.template.spec.imagePullSecrets[1].name", "spec.imagePullSecrets[1]"},
		{"Deployment", "spec.template.spec.serviceAccountName", "spec.serviceAccountName"},
		{"Deployment", "spec.progressDeadlineSeconds", "spec.rollout.progressDeadlineSeconds"},
		{"Deployment", "metadata.labels", "metadata.labels"},
		{"Service", "spec.ports[0].port", "spec.port"},
		{"HorizontalPodAutoscaler", "spec.maxReplicas", "spec.autoscaling.maxReplicas"},
		{"PersistentVolumeClaim", "spec.resources.requests[storage]", "spec.storage.size"},
		{"PersistentVolumeClaim", "spec.storageClassName", "spec.storage.storageClassName"},
		{"Other", "spec.replicas", "spec.replicas"},
	}
	for _, tc := range tests {
		t.Run(tc.kind+" "+tc.child, func(t *testing.T) {
			if got := s.ourField(tc.kind, tc.child); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestARefusalIsToldInOurWords(t *testing.T) {
	s := &scope{app: &slipwayv1alpha1.WebApp{}}
	refused := apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "shop", field.ErrorList{
		field.Invalid(field.NewPath("spec.template.spec.containers[0].resources.limits[memory]"), "-1", "must be greater than or equal to 0"),
		field.Invalid(nil, "null", "some rules were not checked"),
	})
	err := s.inOurWords("Deployment", outcome.Classify(`Deployment "shop"`, refused))
	reported := outcome.Worst(err)
	want := `Deployment "shop" is refused: spec.resources.limits.memory: Invalid value: "-1": must be greater than or equal to 0; Invalid value: "null": some rules were not checked`
	if reported.Message != want || !errors.Is(err, refused) || !reported.Stalls() {
		t.Errorf("told %+v, want %q", reported, want)
	}
	other := errors.New("timeout")
	if got := s.inOurWords("Deployment", other); got != other { //nolint:errorlint // the very same
		t.Errorf("another error becomes %v", got)
	}
	if err := s.inOurWords("Deployment", nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}
