//go:build apitest

package webapp_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// What fuzz tests are given is what the schema allows. What any such spec leads to, the
// API server accepts, pods in a namespace that enforces the restricted Pod Security level
// included; and once it is applied there is nothing left to do.
func TestAnySpecIsAcceptedAndSettles(t *testing.T) {
	f := newFixture(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	update(f, namespace, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		data := make([]byte, 2*i)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		app := generate.WebApp(generate.From(data))
		app.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("shop-%d", i), Namespace: f.namespace}
		t.Run(app.Name, func(t *testing.T) {
			f := &fixture{T: t, namespace: f.namespace}
			// It gets its defaults and a UID, and no operator hears of it.
			if err := env.Client.Create(t.Context(), app, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			f.settles(app)
		})
	}
}

// settles applies the children of a WebApp, and tries to make a pod.
func (f *fixture) settles(app *slipwayv1alpha1.WebApp) {
	f.Helper()
	in := desired.Inputs{App: app, Revision: desired.RevisionOf(app.Spec, "c0ffee"), ConfigVersions: "{}"}
	if app.Spec.Autoscaling == nil {
		in.Replicas = ptr(desired.MinReplicas(app))
	}
	for _, child := range []apply.Child{
		{Desired: desired.Deployment(in), Current: &appsv1.Deployment{}},
		{Desired: desired.Service(app, app.Spec.Port), Current: &corev1.Service{}},
		{Desired: desired.HorizontalPodAutoscaler(app), Current: &autoscalingv2.HorizontalPodAutoscaler{}},
		{Desired: desired.PodDisruptionBudget(app), Current: &policyv1.PodDisruptionBudget{}},
		{Desired: desired.PersistentVolumeClaim(app), Current: &corev1.PersistentVolumeClaim{}},
	} {
		if reflect.ValueOf(child.Desired).IsNil() {
			continue
		}
		applier := func() *apply.Applier {
			return &apply.Applier{Client: env.Client, Live: env.Client, FieldManager: webapp.FieldManager}
		}
		if change, err := applier().Apply(f.Context(), app, child); err != nil || change != apply.Created {
			f.Errorf("%T: %s, %v", child.Current, change, err)
			continue
		}
		// A restarted operator has nothing but the object.
		if change, err := applier().Apply(f.Context(), app, child); err != nil || change != apply.Unchanged {
			f.Errorf("%T, once more: %s, %v", child.Current, change, err)
		}
		// There are 254 addresses for the Services of all tests.
		f.delete(child.Current)
	}
	template, err := json.Marshal(desired.Deployment(in).Spec.Template)
	if err != nil {
		f.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(template, pod); err != nil {
		f.Fatal(err)
	}
	pod.Namespace, pod.Name = f.namespace, app.Name
	// No ServiceAccount controller runs beside a bare API server.
	pod.Spec.ServiceAccountName = ""
	if err := env.Client.Create(f.Context(), pod, client.DryRunAll); err != nil {
		f.Errorf("pod: %v", err)
	}
}
