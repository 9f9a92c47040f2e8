package desired_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// Each case's input is testdata/<name>.in.yaml, an APIGateway; what it leads to is
// testdata/<name>.out.yaml.
func TestWhatAnAPIGatewayLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", func(t *testing.T, input string) string { return render(t, read(t, input)) })
}

func read(t *testing.T, path string) *slipwayv1alpha1.APIGateway {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := yaml.UnmarshalStrict(raw, gateway); err != nil {
		t.Fatal(err)
	}
	gateway.Namespace, gateway.UID = "team", "0000-uid"
	return gateway
}

// inputs are those of the Deployment of a gateway that nobody has scaled.
func inputs(gateway *slipwayv1alpha1.APIGateway) desired.Inputs {
	in := desired.Inputs{Gateway: gateway, Image: "slipway-gateway:1"}
	if gateway.Spec.Autoscaling == nil {
		replicas := desired.MinReplicas(gateway)
		in.Replicas = &replicas
	}
	return in
}

// render writes every object that an APIGateway leads to as one YAML document each.
func render(t *testing.T, gateway *slipwayv1alpha1.APIGateway) string {
	t.Helper()
	objects := []any{
		desired.ServiceAccount(gateway), desired.Role(gateway), desired.RoleBinding(gateway),
		desired.Deployment(inputs(gateway)), desired.Service(gateway),
		desired.HorizontalPodAutoscaler(gateway), desired.PodDisruptionBudget(gateway),
		desired.Ingress(gateway, nil),
	}
	for _, route := range desired.HTTPRoutes(gateway, nil, nil) {
		objects = append(objects, route)
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

// A pod that restarts cuts streams. What a gateway watches by itself must not restart it.
func TestPodsDoNotRestartForWhatTheyWatch(t *testing.T) {
	percent, three := int32(5), int32(3)
	tests := map[string]struct {
		change func(*slipwayv1alpha1.APIGatewaySpec)
		same   bool
	}{
		"routes": {func(s *slipwayv1alpha1.APIGatewaySpec) { s.Routes = nil }, true},
		"a certificate": {func(s *slipwayv1alpha1.APIGatewaySpec) {
			s.TLS = append(s.TLS, slipwayv1alpha1.GatewayTLS{SecretRef: slipwayv1alpha1.LocalReference{Name: "other"}})
		}, true},
		"expose":   {func(s *slipwayv1alpha1.APIGatewaySpec) { s.Expose = nil }, true},
		"replicas": {func(s *slipwayv1alpha1.APIGatewaySpec) { s.Replicas = &three }, true},
		"accessLog": {func(s *slipwayv1alpha1.APIGatewaySpec) {
			s.AccessLog = &slipwayv1alpha1.AccessLog{SamplePercent: &percent}
		}, true},
		"image":        {func(s *slipwayv1alpha1.APIGatewaySpec) { s.Image = "other:1" }, false},
		"drainSeconds": {func(s *slipwayv1alpha1.APIGatewaySpec) { s.DrainSeconds = &percent }, false},
		"resources": {func(s *slipwayv1alpha1.APIGatewaySpec) {
			s.Resources = &slipwayv1alpha1.ResourceRequirements{Limits: corev1.ResourceList{}}
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := read(t, "testdata/everything.in.yaml")
			after := before.DeepCopy()
			tc.change(&after.Spec)
			a, b := desired.Deployment(inputs(before)).Spec.Template, desired.Deployment(inputs(after)).Spec.Template
			if same := cmp.Equal(a, b); same != tc.same {
				t.Errorf("same template: %v, want %v", same, tc.same)
			}
		})
	}
}

// RBAC reads a rule without names as one for all.
func TestWithoutASecretInTheSpecThePodsMayReadNone(t *testing.T) {
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "edge", Namespace: "team"}}
	for _, rule := range desired.Role(gateway).Rules {
		for _, resource := range rule.Resources {
			if resource == "secrets" {
				t.Errorf("rule %v lets the pods read Secrets", rule)
			}
		}
	}
}

// A release that probes otherwise than the one before must not replace pods for it.
func TestPodsKeepTheirProbeUntilTheirImageChanges(t *testing.T) {
	gateway := read(t, "testdata/everything.in.yaml")
	running := func(image string, period int32) *appsv1.Deployment {
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "sidecar", Image: image},
			{Name: "gateway", Image: image, ReadinessProbe: &corev1.Probe{PeriodSeconds: period, TimeoutSeconds: 2, FailureThreshold: 3}},
		}}}}}
	}
	tests := map[string]struct {
		current *appsv1.Deployment
		want    int32 // the period
	}{
		"there is none":                   {nil, 1},
		"it is empty":                     {&appsv1.Deployment{}, 1},
		"the probe of v0.1.0":             {running(gateway.Spec.Image, 2), 2},
		"the probe of v0.1.0, by another": {running("other:1", 2), 1},
		"a probe of somebody else":        {running(gateway.Spec.Image, 7), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := inputs(gateway)
			in.Current = tc.current
			probe := desired.Deployment(in).Spec.Template.Spec.Containers[0].ReadinessProbe
			if *probe.PeriodSeconds != tc.want {
				t.Errorf("the period is %d s, want %d s", *probe.PeriodSeconds, tc.want)
			}
			if *probe.TimeoutSeconds**probe.FailureThreshold != 6 {
				t.Errorf("a slow pod is taken out after %d times %d s, want 6 s", *probe.FailureThreshold, *probe.TimeoutSeconds)
			}
		})
	}
}
