//go:build apitest

package apigateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// The manifest is a contract: it must work as it stands.
func TestTheShortestManifestBecomesReady(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	products := f.service("product-service")
	products.Spec.Ports[0].Port = 8081
	f.create(f.service("user-service"), products)
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := yaml.UnmarshalStrict([]byte(`
apiVersion: slipway.dev/v1alpha1
kind: APIGateway
metadata: {name: edge}
spec:
  replicas: 2                 # image: optional, the release's own gateway
  routes:
    - {host: api.example.com, path: /users/, backendService: {name: user-service, port: 8080}}
    - {host: api.example.com, path: /products/, backendService: {name: product-service, port: 8081}}
`), gateway); err != nil {
		t.Fatal(err)
	}
	gateway.Namespace = f.namespace
	f.create(gateway)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolloutInProgress)

	f.rollOut()

	f.settle()
	got := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady).Status
	url := "http://edge." + f.namespace + ".svc.cluster.local"
	want := slipwayv1alpha1.APIGatewayStatus{
		ObservedGeneration: 1, Replicas: 2, ReadyReplicas: 2,
		Selector:   "slipway.dev/apigateway=edge",
		ServiceURL: url,
		Routes:     slipwayv1alpha1.RoutesStatus{Total: 2, Live: 2},
		Summary:    slipwayv1alpha1.APIGatewaySummary{Routes: "2/2", Replicas: "2/2", Address: url},
		Conditions: got.Conditions,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	var conditions []string
	for _, c := range got.Conditions {
		conditions = append(conditions, c.Type+"="+string(c.Status))
	}
	if diff := cmp.Diff("Ready=True Accepted=True ResolvedRefs=True Programmed=True Available=True Progressing=False Degraded=False", strings.Join(conditions, " ")); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// gone tells that there is no such object.
func (f *fixture) gone(name string, object client.Object) error {
	err := f.get(name, object)
	if err == nil {
		return fmt.Errorf("%T %q is there", object, name)
	}
	return client.IgnoreNotFound(err)
}

// What an edit makes superfluous goes, and comes back with the edit.
func TestWhatTheSpecNoLongerAsksForIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 4}
	})
	superfluous := map[string]client.Object{
		"edge-ingress": &networkingv1.Ingress{}, "edge": &autoscalingv2.HorizontalPodAutoscaler{},
	}
	for name, object := range superfluous {
		if err := f.get(name, object); err != nil {
			t.Fatal(err)
		}
	}
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Autoscaling, g.Spec.Replicas = nil, ptr[int32](1)
		g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeNodePort}
	})
	superfluous["edge"] = &policyv1.PodDisruptionBudget{}
	environment.Eventually(t, func() error {
		for name, object := range superfluous {
			if err := f.gone(name, object); err != nil {
				return err
			}
		}
		if err := f.gone("edge", &autoscalingv2.HorizontalPodAutoscaler{}); err != nil {
			return err
		}
		service, deployment := &corev1.Service{}, &appsv1.Deployment{}
		if err := f.get("edge", service); err != nil {
			return err
		}
		if err := f.get("edge", deployment); err != nil {
			return err
		}
		if diff := cmp.Diff([]any{corev1.ServiceTypeNodePort, int32(1)}, []any{service.Spec.Type, *deployment.Spec.Replicas}); diff != "" {
			return fmt.Errorf("type and replicas (-want +got):\n%s", diff)
		}
		return nil
	})
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Expose = nil })
	environment.Eventually(t, func() error {
		service := &corev1.Service{}
		if err := f.get("edge", service); err != nil {
			return err
		}
		if service.Spec.Type != corev1.ServiceTypeClusterIP {
			return fmt.Errorf("the Service is of type %s", service.Spec.Type)
		}
		return f.get("edge-ingress", &networkingv1.Ingress{})
	})
}

// The rights of the pods follow the Secrets in the spec.
func TestThePodsMayReadExactlyTheSecretsInTheSpec(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	tls := func(names ...string) func(*slipwayv1alpha1.APIGateway) {
		return func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.TLS = nil
			for _, name := range names {
				g.Spec.TLS = append(g.Spec.TLS, slipwayv1alpha1.GatewayTLS{SecretRef: slipwayv1alpha1.LocalReference{Name: name}})
			}
		}
	}
	gateway := f.gateway(tls("b", "a"))
	f.create(gateway)
	for _, want := range [][]string{{"a", "b"}, {"c"}, nil} {
		if want != nil {
			update(f, gateway, tls(want...))
		} else {
			update(f, gateway, tls())
		}
		environment.Eventually(t, func() error {
			role := &rbacv1.Role{}
			if err := f.get("edge", role); err != nil {
				return err
			}
			var got []string
			for _, rule := range role.Rules {
				if rule.Resources[0] == "secrets" {
					got = rule.ResourceNames
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return fmt.Errorf("Secrets (-want +got):\n%s", diff)
			}
			return nil
		})
	}
}

func TestADeletedGatewayLeavesItsChildrenToTheGarbageCollector(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running(full)
	for kind, child := range children() {
		if err := f.get(nameOf(kind), child); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if !metav1.IsControlledBy(child, gateway) {
			t.Errorf("%s is not owned by the APIGateway: %v", kind, child.GetOwnerReferences())
		}
	}
	f.delete(gateway)
	// Without a finalizer it is gone at once, and nothing recreates its children.
	environment.Eventually(t, func() error { return f.gone("edge", &slipwayv1alpha1.APIGateway{}) })
	deployment := &appsv1.Deployment{}
	if err := f.get("edge", deployment); err != nil {
		t.Fatal(err)
	}
	f.delete(deployment)
	environment.Quiet(t, quiet, func() bool { return f.gone("edge", deployment) == nil })
	if err := f.gone("edge", deployment); err != nil {
		t.Error(err)
	}
}
