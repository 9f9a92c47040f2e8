package desired_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/testing/golden"
)

// Each case's input is testdata/<name>.in.yaml, a Gateway and perhaps GatewayParameters; what it leads to is
// testdata/<name>.out.yaml.
func TestWhatAGatewayLeadsTo(t *testing.T) {
	golden.Cases(t, "testdata", func(t *testing.T, input string) string {
		gateway, parameters := read(t, input)
		in := inputs(gateway)
		in.Parameters, in.Replicas = parameters, parameters.Replicas
		return render(t, in)
	})
}

func read(t *testing.T, path string) (*gatewayv1.Gateway, slipwayv1alpha1.GatewayParametersSpec) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	gateway, parameters := &gatewayv1.Gateway{}, &slipwayv1alpha1.GatewayParameters{}
	ofGateway, ofParameters, _ := strings.Cut(string(raw), "---\n")
	for object, text := range map[any]string{gateway: ofGateway, parameters: ofParameters} {
		if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
			t.Fatal(err)
		}
	}
	gateway.Namespace, gateway.UID = "team", "0000-uid"
	return gateway, parameters.Spec
}

// inputs are those of a Gateway whose Secrets all exist, those of other namespaces without a grant.
func inputs(gateway *gatewayv1.Gateway) desired.Inputs {
	secrets := map[types.NamespacedName]gatewayapi.Secret{}
	for _, l := range gateway.Spec.Listeners {
		if l.TLS == nil {
			continue
		}
		for _, ref := range l.TLS.CertificateRefs {
			secrets[types.NamespacedName{Namespace: gateway.Namespace, Name: string(ref.Name)}] = gatewayapi.Secret{}
		}
	}
	built := gatewayapi.Build(gatewayapi.Input{Gateway: gateway, Secrets: secrets, ReservedPorts: desired.ReservedPorts()})
	return desired.Inputs{Gateway: gateway, Image: "slipway-gateway:1", ServiceType: corev1.ServiceTypeLoadBalancer, Listeners: built.Listeners, Secrets: built.Certificates()}
}

// render writes every object that a Gateway leads to as one YAML document each.
func render(t *testing.T, in desired.Inputs) string {
	t.Helper()
	data := map[string][]byte{}
	copied.Put(data, types.NamespacedName{Namespace: "other", Name: "web"}, copied.Certificate{Certificate: []byte("c"), PrivateKey: []byte("k"), Version: "7"})
	objects := []any{
		desired.ServiceAccount(in), desired.Role(in), desired.RoleBinding(in), desired.Deployment(in), desired.Service(in),
		desired.HorizontalPodAutoscaler(in), desired.PodDisruptionBudget(in), desired.Copies(in.Gateway, data),
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

func TestEveryNameIsOneThatTheChildrenCanHave(t *testing.T) {
	long := strings.Repeat("n", 63)
	seen := map[string]string{}
	for _, tc := range []struct{ gateway, class, want string }{
		{"edge", "slipway", "edge-slipway"},
		{"edge.example", "slipway", ""},
		{"edge-example", "slipway", "edge-example-slipway"},
		{"8080", "slipway", ""},
		{"g-8080", "slipway", "g-8080-slipway"},
		{long, "slipway", ""},
		{long, "slipway-other", ""},
		{long + "." + long, "slipway", ""},
		{long + "." + long + "2", "slipway", ""},
	} {
		gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Name: tc.gateway}, Spec: gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(tc.class)}}
		name, whole := desired.Name(gateway), tc.gateway+"/"+tc.class
		if tc.want != "" && name != tc.want {
			t.Errorf("%s: it is called %q, want %q", whole, name, tc.want)
		}
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			t.Errorf("%s: %q is no name of a Service: %v", whole, name, problems)
		}
		if problems := validation.IsValidLabelValue(desired.LabelValue(gateway)); len(problems) > 0 {
			t.Errorf("%s: %q is no label: %v", whole, desired.LabelValue(gateway), problems)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s are both called %q", whole, other, name)
		}
		seen[name] = whole
	}
}

// A pod that restarts cuts streams. What the pods watch by themselves must not restart them.
func TestPodsDoNotRestartForWhatTheyWatch(t *testing.T) {
	tests := map[string]struct {
		change func(*gatewayv1.Gateway)
		same   bool
	}{
		"a listener": {func(g *gatewayv1.Gateway) { g.Spec.Listeners = g.Spec.Listeners[:1] }, true},
		"an address": {func(g *gatewayv1.Gateway) { g.Spec.Addresses = nil }, true},
		"a label":    {func(g *gatewayv1.Gateway) { g.Spec.Infrastructure = nil }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before, _ := read(t, "testdata/everything.in.yaml")
			after := before.DeepCopy()
			tc.change(after)
			a, b := desired.Deployment(inputs(before)).Spec.Template, desired.Deployment(inputs(after)).Spec.Template
			if same := cmp.Equal(a, b); same != tc.same {
				t.Errorf("same template: %v, want %v", same, tc.same)
			}
		})
	}
}
