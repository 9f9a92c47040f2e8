//go:build apitest

package webapp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/ownership"
)

// full returns a WebApp that makes every kind of child but the volume, with every
// kind of field.
func (f *fixture) full() *slipwayv1alpha1.WebApp {
	return f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"LOG_LEVEL": "info"}
		a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "/healthz"}
		a.Spec.Args = []string{"-v"}
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}, Keys: []string{"PASSWORD"}}}
		a.Spec.Files = []slipwayv1alpha1.FileSource{{ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}, MountPath: "/etc/shop"}}
		a.Spec.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}}
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
		a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](2), MaxReplicas: 6}
	})
}

func (f *fixture) createFull() {
	f.create(f.secret("db", map[string]string{"PASSWORD": "p"}))
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: f.namespace}, Data: map[string]string{"a": "b"}})
	f.create(f.full())
	f.deployment()
	f.rollOut()
	f.settle()
}

func children() map[string]client.Object {
	return map[string]client.Object{
		"Deployment":              &appsv1.Deployment{},
		"Service":                 &corev1.Service{},
		"HorizontalPodAutoscaler": &autoscalingv2.HorizontalPodAutoscaler{},
		"PodDisruptionBudget":     &policyv1.PodDisruptionBudget{},
	}
}

// Somebody changes each field that the operator owns, one after the other: each is
// restored.
func TestEveryOwnedFieldIsRestored(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.createFull()
	var healed []time.Duration
	refused := map[string]string{}
	for kind, child := range children() {
		for _, path := range ownedLeaves(f, child) {
			took, err := f.changeAndWait(child, path)
			switch {
			case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
				refused[kind+path.String()] = err.Error()
			case err != nil:
				t.Fatalf("%s%s: %v", kind, path, err)
			default:
				healed = append(healed, took)
			}
		}
	}
	slices.Sort(healed)
	t.Logf("%d fields restored, p50 %v, p99 %v, slowest %v; %d cannot be changed by anybody", len(healed),
		healed[len(healed)/2], healed[len(healed)*99/100], healed[len(healed)-1], len(refused))
	if len(healed) < 60 {
		t.Errorf("only %d fields were changed: %v", len(healed), refused)
	}
	// The bound holds for every single one on an idle machine, which is measured in
	// test/scale; here other tests compete for the processor.
	if p50 := healed[len(healed)/2]; p50 > 250*time.Millisecond {
		t.Errorf("half of the fields took longer than %v, want 250ms", p50)
	}
}

// ownedLeaves lists the fields that the operator owns in a child and that can be
// changed in place.
func ownedLeaves(f *fixture, child client.Object) []fieldpath.Path {
	f.Helper()
	if err := f.get("shop", child); err != nil {
		f.Fatal(err)
	}
	leaves, err := ownership.Leaves(child, "slipway-webapp")
	if err != nil {
		f.Fatal(err)
	}
	if len(leaves) == 0 {
		f.Fatalf("the operator owns nothing in %T", child)
	}
	return leaves
}

// changeAndWait changes one field by hand and returns how long it took until the
// object was as before.
func (f *fixture) changeAndWait(child client.Object, path fieldpath.Path) (time.Duration, error) {
	f.Helper()
	if err := f.get("shop", child); err != nil {
		return 0, err
	}
	before := specAndMeta(f, child)
	object := map[string]any{}
	if err := convert(child, &object); err != nil {
		return 0, err
	}
	if !ownership.Change(object, path) {
		return 0, fmt.Errorf("no such field in %v", object)
	}
	changed := &unstructured.Unstructured{Object: object}
	changed.SetGroupVersionKind(gvkOf(f, child))
	if err := env.Client.Update(f.Context(), changed, client.FieldOwner("hand")); err != nil {
		return 0, err
	}
	if cmp.Equal(before, specAndMeta(f, changed)) {
		return 0, fmt.Errorf("the change had no effect")
	}
	start := time.Now()
	environment.Eventually(f, func() error {
		if err := f.get("shop", child); err != nil {
			return err
		}
		if diff := cmp.Diff(before, specAndMeta(f, child)); diff != "" {
			return fmt.Errorf("%s is not restored (-want +got):\n%s", path, diff)
		}
		return nil
	})
	return time.Since(start), nil
}

// specAndMeta is an object without what the API server and other controllers keep.
func specAndMeta(f *fixture, object client.Object) map[string]any {
	f.Helper()
	fields := map[string]any{}
	if err := convert(object, &fields); err != nil {
		f.Fatal(err)
	}
	delete(fields, "status")
	delete(fields, "apiVersion")
	delete(fields, "kind")
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

func gvkOf(f *fixture, object client.Object) schema.GroupVersionKind {
	f.Helper()
	gvk, err := env.Client.GroupVersionKindFor(object)
	if err != nil {
		f.Fatal(err)
	}
	return gvk
}

func TestADeletedChildComesBack(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.createFull()
	for kind, child := range children() {
		if err := f.get("shop", child); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		before := child.GetUID()
		if err := env.Client.Delete(t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		start := time.Now()
		environment.Eventually(t, func() error {
			if err := f.get("shop", child); err != nil {
				return err
			}
			if child.GetUID() == before {
				return fmt.Errorf("%s is still being deleted", kind)
			}
			return nil
		})
		t.Logf("%s was back after %v", kind, time.Since(start).Round(time.Millisecond))
	}
}

// What others add stays, while the operator writes the object again.
func TestFieldsOfOthersSurvive(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.createFull()
	deployment := f.deployment()
	patch := []byte(`{"metadata":{"annotations":{"mesh.example.com/inject":"true"}},
		"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
	if err := env.Client.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-rollout")); err != nil {
		t.Fatal(err)
	}
	scale(f, 5)

	app := f.app()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "other:2" })

	after := f.deployed(runsImage("other:2"))
	got := []any{after.Annotations["mesh.example.com/inject"], after.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"], *after.Spec.Replicas}
	if diff := cmp.Diff([]any{"true", "2026-01-01T00:00:00Z", int32(5)}, got); diff != "" {
		t.Errorf("what others own (-want +got):\n%s", diff)
	}
}

// scale changes the number of pods as an autoscaler does.
func scale(f *fixture, replicas int32) {
	f.Helper()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	deployment := f.deployment()
	err := env.Client.SubResource("scale").Patch(f.Context(), deployment, client.RawPatch(types.MergePatchType, body), client.FieldOwner("autoscaler"))
	if err != nil {
		f.Fatalf("scale: %v", err)
	}
}

// The cache shows only objects with our label. So it does not report the end of a child that
// lost the label while it was being deleted.
func TestAChildThatGoesWithoutOurLabelIsRecreatedWhenItIsGone(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.running()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace}}
	update(f, service, func(s *corev1.Service) { s.Finalizers = []string{"example.com/held"} })
	f.delete(service)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)
	update(f, service, func(s *corev1.Service) { delete(s.Labels, slipwayv1alpha1.LabelManagedBy) })
	f.settle()
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonTerminating)

	old := service.UID
	update(f, service, func(s *corev1.Service) { s.Finalizers = nil })
	f.noticed("the Service is gone", func() error {
		if err := f.get("shop", service); err != nil {
			return err
		}
		if service.UID == old {
			return errors.New("the old Service is still there")
		}
		return nil
	})
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
}
