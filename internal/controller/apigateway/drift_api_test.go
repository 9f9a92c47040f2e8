//go:build apitest

package apigateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/ownership"
)

// quiet is how long nothing may happen before nothing is going to happen.
const quiet = 500 * time.Millisecond

func children() map[string]client.Object {
	return map[string]client.Object{
		"ServiceAccount":          &corev1.ServiceAccount{},
		"Role":                    &rbacv1.Role{},
		"RoleBinding":             &rbacv1.RoleBinding{},
		"Deployment":              &appsv1.Deployment{},
		"Service":                 &corev1.Service{},
		"PodDisruptionBudget":     &policyv1.PodDisruptionBudget{},
		"Ingress":                 &networkingv1.Ingress{},
		"HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{},
	}
}

func nameOf(kind string) string {
	if kind == "Ingress" {
		return "edge-ingress"
	}
	return "edge"
}

// full asks for every kind of child, with every kind of field.
func full(g *slipwayv1alpha1.APIGateway) {
	g.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 6}
	g.Spec.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}}
	g.Spec.TLS = []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "edge-tls"}, Hosts: []slipwayv1alpha1.HostName{"api.example.com"}}}
	g.Spec.Expose = &slipwayv1alpha1.Expose{IngressClassName: ptr("nginx"), Annotations: map[string]string{"a.example.com/b": "c"}}
}

// Somebody changes each field that the operator owns, one after the other: each is
// restored.
func TestEveryOwnedFieldIsRestored(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running(full)
	f.settle()
	healed := 0
	refused := map[string]string{}
	for kind, child := range children() {
		if err := f.get(nameOf(kind), child); err != nil {
			t.Fatal(err)
		}
		leaves, err := ownership.Leaves(child, "slipway-apigateway")
		if err != nil || len(leaves) == 0 {
			t.Fatalf("the operator owns nothing of the %s (%v)", kind, err)
		}
		for _, path := range leaves {
			err := f.changeAndWait(kind, child, path)
			switch {
			case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
				refused[kind+path.String()] = err.Error()
			case err != nil:
				t.Fatalf("%s%s: %v", kind, path, err)
			default:
				healed++
			}
		}
	}
	t.Logf("%d fields restored; %d cannot be changed by anybody", healed, len(refused))
	if healed < 90 {
		t.Errorf("only %d fields were changed: %v", healed, refused)
	}
}

// Whoever takes our label from the Deployment hides it from the cache. The pods keep their
// probe all the same: the operator looks what they have before it states another.
func TestPodsThatTheCacheDoesNotShowKeepTheirProbe(t *testing.T) {
	f := newFixture(t)
	first := f.startOperator(nil)
	gateway := f.running()
	f.settle()
	first.Stop(t)
	before := &appsv1.Deployment{}
	if err := f.get("edge", before); err != nil {
		t.Fatal(err)
	}
	probe := before.Spec.Template.Spec.Containers[0].ReadinessProbe
	probe.PeriodSeconds, probe.TimeoutSeconds, probe.FailureThreshold = 2, 2, 3
	earlier := desired.Deployment(desired.Inputs{
		Gateway: gateway, Image: before.Spec.Template.Spec.Containers[0].Image, Current: before, Replicas: ptr[int32](2),
	})
	if err := env.Client.Apply(t.Context(), earlier, client.FieldOwner(apigateway.FieldManager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	update(f, before, func(d *appsv1.Deployment) { delete(d.Labels, slipwayv1alpha1.LabelManagedBy) })

	f.startOperator(nil)
	after := &appsv1.Deployment{}
	environment.Eventually(t, func() error {
		if err := f.get("edge", after); err != nil {
			return err
		}
		if after.Labels[slipwayv1alpha1.LabelManagedBy] == "" {
			return errors.New("the label is not restored")
		}
		return nil
	})
	f.settle()
	if err := f.get("edge", after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Spec.Template, after.Spec.Template); diff != "" {
		t.Errorf("the pods are replaced (-before +after):\n%s", diff)
	}
}

// changeAndWait changes one field by hand and waits until the object is as before.
func (f *fixture) changeAndWait(kind string, child client.Object, path fieldpath.Path) error {
	f.Helper()
	if err := f.get(nameOf(kind), child); err != nil {
		return err
	}
	before := specAndMeta(f, child)
	object := map[string]any{}
	if err := convert(child, &object); err != nil {
		return err
	}
	if !ownership.Change(object, path) {
		return fmt.Errorf("no such field in %v", object)
	}
	changed := &unstructured.Unstructured{Object: object}
	gvk, err := env.Client.GroupVersionKindFor(child)
	if err != nil {
		return err
	}
	changed.SetGroupVersionKind(gvk)
	if err := env.Client.Update(f.Context(), changed, client.FieldOwner("hand")); err != nil {
		return err
	}
	if cmp.Equal(before, specAndMeta(f, changed)) {
		return fmt.Errorf("the change had no effect")
	}
	environment.Eventually(f, func() error {
		if err := f.get(nameOf(kind), child); err != nil {
			return err
		}
		if diff := cmp.Diff(before, specAndMeta(f, child)); diff != "" {
			return fmt.Errorf("%s%s is not restored (-want +got):\n%s", kind, path, diff)
		}
		return nil
	})
	return nil
}

// specAndMeta is an object without what the API server and other controllers keep.
func specAndMeta(f *fixture, object client.Object) map[string]any {
	f.Helper()
	fields := map[string]any{}
	if err := convert(object, &fields); err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"status", "apiVersion", "kind"} {
		delete(fields, name)
	}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(metadata, name)
		}
	}
	return fields
}

func convert(from, to any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func TestADeletedChildComesBack(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running(full)
	for kind, child := range children() {
		if err := f.get(nameOf(kind), child); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		before := child.GetUID()
		if err := env.Client.Delete(t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		environment.Eventually(t, func() error {
			if err := f.get(nameOf(kind), child); err != nil {
				return err
			}
			if child.GetUID() == before {
				return fmt.Errorf("%s is still being deleted", kind)
			}
			return nil
		})
	}
	f.rollOut()
}

func TestAForeignObjectIsRefusedNamedAndUntouched(t *testing.T) {
	labels := map[string]string{"app": "other"}
	foreign := map[string]func(metav1.ObjectMeta) client.Object{
		"ServiceAccount": func(m metav1.ObjectMeta) client.Object { return &corev1.ServiceAccount{ObjectMeta: m} },
		"Role":           func(m metav1.ObjectMeta) client.Object { return &rbacv1.Role{ObjectMeta: m} },
		"Service": func(m metav1.ObjectMeta) client.Object {
			return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		},
		"PodDisruptionBudget": func(m metav1.ObjectMeta) client.Object {
			return &policyv1.PodDisruptionBudget{ObjectMeta: m, Spec: policyv1.PodDisruptionBudgetSpec{
				MaxUnavailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			}}
		},
		"Ingress": func(m metav1.ObjectMeta) client.Object {
			return &networkingv1.Ingress{ObjectMeta: m, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "other", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}}
		},
	}
	for kind, make := range foreign {
		t.Run(kind, func(t *testing.T) {
			f := newFixture(t)
			f.startOperator(nil)
			object := make(metav1.ObjectMeta{Name: nameOf(kind), Namespace: f.namespace, Labels: map[string]string{"team": "other"}})
			f.create(object, f.gateway())

			gateway := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
			if err := has(gateway, "Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonNameConflict); err != nil {
				t.Error(err)
			}
			want := fmt.Sprintf("%s %q exists and was not made by Slipway: rename or delete one of them", kind, nameOf(kind))
			if got := meta.FindStatusCondition(gateway.Status.Conditions, "Stalled").Message; got != want {
				t.Errorf("message %q, want %q", got, want)
			}
			after := children()[kind]
			if err := f.get(nameOf(kind), after); err != nil {
				t.Fatal(err)
			}
			if after.GetResourceVersion() != object.GetResourceVersion() {
				t.Errorf("the foreign object was changed: %+v", after)
			}
		})
	}
}
