//go:build apitest

package webapp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func (f *fixture) foreign() map[string]client.Object {
	meta := metav1.ObjectMeta{Name: "shop", Namespace: f.namespace, Labels: map[string]string{"team": "other"}}
	labels := map[string]string{"app": "other"}
	return map[string]client.Object{
		"Deployment": &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other"}}},
			},
		}},
		"Service":             &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}}},
	}
}

func TestAForeignObjectIsRefusedNamedAndUntouched(t *testing.T) {
	env.StartOperator(t, nil)
	// With our own label on it, and without: the cache shows one and not the other.
	for _, labelled := range []bool{false, true} {
		for kind := range newFixture(t).foreign() {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				object := f.foreign()[kind]
				if labelled {
					object.SetLabels(map[string]string{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway})
				}
				f.create(object)
				f.create(f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](2) }))

				app := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
				if err := has(app, "Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonNameConflict); err != nil {
					t.Error(err)
				}
				want := kind + ` "shop" exists and was not made by Slipway: rename or delete one of them`
				if got := meta.FindStatusCondition(app.Status.Conditions, "Stalled").Message; got != want {
					t.Errorf("message %q, want %q", got, want)
				}
				if app.Status.Replicas != 0 || app.Status.Image == "other" {
					t.Errorf("status speaks of the foreign object: %+v", app.Status)
				}
				after := f.foreign()[kind]
				if err := f.get("shop", after); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(object, after); diff != "" {
					t.Errorf("the foreign object was changed (-want +got):\n%s", diff)
				}

				f.delete(object)
				f.deployment()
				f.rollOut()
			})
		}
	}
}

func TestBadInputIsRefusedWithOneSentenceThatNamesTheField(t *testing.T) {
	tests := map[string]struct {
		change func(*slipwayv1alpha1.WebApp)
		want   string
	}{
		"no image":          {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "" }, "spec.image"},
		"blank in image":    {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "a b" }, "spec.image must not hold white space"},
		"no port":           {func(a *slipwayv1alpha1.WebApp) { a.Spec.Port = 0 }, "spec.port"},
		"port":              {func(a *slipwayv1alpha1.WebApp) { a.Spec.Port = 70000 }, "spec.port"},
		"negative replicas": {func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](-1) }, "spec.replicas"},
		"long name":         {func(a *slipwayv1alpha1.WebApp) { a.Name = strings.Repeat("a", 53) }, "metadata.name must be at most 52 characters"},
		"name with dot":     {func(a *slipwayv1alpha1.WebApp) { a.Name = "a.b" }, "metadata.name must start with a letter"},
		"env name":          {func(a *slipwayv1alpha1.WebApp) { a.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"1A": ""} }, "spec.env"},
		"envFrom nothing": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{Prefix: "A"}}
		}, "set exactly one of secretRef and configMapRef"},
		"files twice": {func(a *slipwayv1alpha1.WebApp) {
			ref := &slipwayv1alpha1.LocalReference{Name: "x"}
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: ref, MountPath: "/a"}, {ConfigMapRef: ref, MountPath: "/a"}}
		}, "every mountPath must be unique"},
		"files over storage": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "/data"}}
		}, "spec.files: mountPath must differ from spec.storage.mountPath"},
		"relative mountPath": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "etc"}}
		}, "mountPath must be absolute"},
		"health path": {func(a *slipwayv1alpha1.WebApp) { a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "x"} }, "spec.health.path must start with '/'"},
		"requests over limits": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": quantity("2")}, Limits: corev1.ResourceList{"cpu": quantity("500m")},
			}
		}, "requests must not exceed limits"},
		"autoscaling bounds": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1")}}
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](5), MaxReplicas: 2}
		}, "spec.autoscaling.minReplicas must not exceed maxReplicas"},
		"autoscaling without a request": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 2}
		}, "spec.resources.requests.cpu is required with spec.autoscaling"},
		"storage and replicas": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Replicas = ptr[int32](2)
		}, "spec.replicas must be 0 or 1 with spec.storage"},
		"storage and autoscaling": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1")}}
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 2}
		}, "spec.autoscaling cannot be combined with spec.storage"},
		"storage size": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
		}, "spec.storage.size must be greater than 0"},
		"serviceAccountName": {func(a *slipwayv1alpha1.WebApp) { a.Spec.ServiceAccountName = "Not a name" }, "spec.serviceAccountName must be a DNS subdomain"},
		"storageClassName": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data", StorageClassName: ptr("Not a name")}
		}, "spec.storage.storageClassName must be a DNS subdomain"},
		"secretRef": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "a..b"}}}
		}, "spec.envFrom[0].secretRef.name: Invalid value: \"a..b\": name must be a DNS subdomain"},
		"envFrom key": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, Keys: []string{"not a key"}}}
		}, "spec.envFrom[0].keys[0]"},
		"files key": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "/x", Keys: []string{".."}}}
		}, "spec.files[0].keys[0]"},
		"onFailure": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: "Panic"}
		}, "spec.rollout.onFailure"},
	}
	f := newFixture(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := env.Client.Create(t.Context(), f.app(tc.change))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the answer is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// What the schema cannot know is told in status, and a good edit recovers.
func TestWhatTheAPIServerRefusesIsNamed(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{}
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"not a resource": quantity("1")}}
	})
	f.create(app)
	stalled := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonInvalid)
	message := meta.FindStatusCondition(stalled.Status.Conditions, "Stalled").Message
	if !strings.Contains(message, `Deployment "shop" is refused: spec.template.spec.containers[0].resources.requests`) {
		t.Errorf("message %q", message)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Resources = nil })
	f.deployment()
	f.rollOut()
}
