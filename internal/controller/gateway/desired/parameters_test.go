package desired_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
)

func parameters(t *testing.T, text string) slipwayv1alpha1.GatewayParametersSpec {
	t.Helper()
	var spec slipwayv1alpha1.GatewayParametersSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestAFieldOfTheGatewayReplacesThatOfItsClass(t *testing.T) {
	for name, tc := range map[string]struct{ class, own, want string }{
		"neither":             {"{}", "{}", "{}"},
		"the class alone":     {"{replicas: 2, drainSeconds: 5}", "{}", "{replicas: 2, drainSeconds: 5}"},
		"the Gateway alone":   {"{}", "{replicas: 2, accessLog: {samplePercent: 1}}", "{replicas: 2, accessLog: {samplePercent: 1}}"},
		"different fields":    {"{replicas: 2}", "{drainSeconds: 5}", "{replicas: 2, drainSeconds: 5}"},
		"the same field":      {"{replicas: 2, drainSeconds: 5}", "{replicas: 4}", "{replicas: 4, drainSeconds: 5}"},
		"zero is a value":     {"{drainSeconds: 5, accessLog: {samplePercent: 9}}", "{drainSeconds: 0, accessLog: {samplePercent: 0}}", "{drainSeconds: 0, accessLog: {samplePercent: 0}}"},
		"a number of pods":    {"{autoscaling: {maxReplicas: 9}}", "{replicas: 4}", "{replicas: 4}"},
		"an autoscaler":       {"{replicas: 4}", "{autoscaling: {maxReplicas: 9}}", "{autoscaling: {maxReplicas: 9}}"},
		"proxies":             {"{trustedProxies: [10.0.0.0/8]}", "{trustedProxies: [192.0.2.0/24]}", "{trustedProxies: [192.0.2.0/24]}"},
		"no proxies":          {"{trustedProxies: [10.0.0.0/8]}", "{trustedProxies: []}", "{trustedProxies: []}"},
		"PROXY turned off":    {"{proxyProtocol: {mode: Required, sources: [10.0.0.0/8]}}", "{proxyProtocol: {mode: 'Off'}}", "{proxyProtocol: {mode: 'Off'}}"},
		"a part of a Service": {"{service: {type: LoadBalancer, loadBalancerClass: a}}", "{service: {type: ClusterIP}}", "{service: {type: ClusterIP, loadBalancerClass: a}}"},
		"another Service":     {"{service: {externalTrafficPolicy: Local, annotations: {a: b}}}", "{service: {annotations: {c: d}}}", "{service: {externalTrafficPolicy: Local, annotations: {c: d}}}"},
		"the Service of one":  {"{}", "{service: {type: NodePort}}", "{service: {type: NodePort}}"},
		"resources, as one":   {"{resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}", "{resources: {requests: {cpu: 2}}}", "{resources: {requests: {cpu: 2}}}"},
		"pull secrets":        {"{imagePullSecrets: [{name: a}]}", "{imagePullSecrets: [{name: b}]}", "{imagePullSecrets: [{name: b}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			class, own := parameters(t, tc.class), parameters(t, tc.own)
			if diff := cmp.Diff(parameters(t, tc.want), desired.Parameters(class, own)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(parameters(t, tc.class), class); diff != "" {
				t.Errorf("those of the class are changed: %s", diff)
			}
		})
	}
}

func TestWhatTheClassAsksForMayContradictWhatTheGatewayDoes(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                              false,
		"{autoscaling: {maxReplicas: 3}}": false,
		"{autoscaling: {maxReplicas: 3}, resources: {requests: {memory: 1Gi}}}": true,
		"{autoscaling: {maxReplicas: 3}, resources: {}}":                        true,
		"{autoscaling: {maxReplicas: 3}, resources: {requests: {cpu: 1}}}":      false,
		"{autoscaling: {maxReplicas: 3}, resources: {limits: {cpu: 1}}}":        false,
		"{resources: {requests: {memory: 1Gi}}}":                                false,
	} {
		if got := desired.Contradiction(parameters(t, text)); (got != "") != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// What a Deployment was made with is found on it, so it stays when nobody can read the parameters any more.
func TestADeploymentTellsItsParameters(t *testing.T) {
	for _, name := range []string{"parameters", "autoscaled", "single", "shortest"} {
		gateway, want := read(t, "testdata/"+name+".in.yaml")
		in := inputs(gateway)
		in.Parameters = want
		made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: desired.Deployment(in).Annotations}}
		got, err := desired.Asked(made)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(desired.Deployment(in), desired.Deployment(desired.Inputs{
			Gateway: in.Gateway, Image: in.Image, Parameters: got, Listeners: in.Listeners,
		})); diff != "" {
			t.Errorf("%s: it would be made anew: %s", name, diff)
		}
	}
	wrong := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{desired.AnnotationParameters: "{replicas"}}}
	if got, err := desired.Asked(wrong); err == nil {
		t.Errorf("nonsense is read as %+v", got)
	}
}
