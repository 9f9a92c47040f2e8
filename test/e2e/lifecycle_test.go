//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

func TestAnApplicationAnswersOnItsPodsAndItsService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(replicas(2), env("GREETING", "good morning")))
	app := f.good()

	for _, pod := range f.pods() {
		f.answers(livecluster.Address(pod.Status.PodIP, 8080), "Hello from "+pod.Name)
	}
	f.answers(f.serviceURL(), "Hello from "+appName+"-")
	f.answers(f.serviceURL()+"/config", "env: good morning")

	want := slipwayv1alpha1.WebAppSummary{Replicas: "2/2"}
	if diff := cmp.Diff(want, app.Status.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if app.Status.Image != cluster.DemoImage || app.Status.ReadyReplicas != 2 || app.Status.LastGoodRevision != app.Status.Revision {
		t.Errorf("status does not say what runs: %+v", app.Status)
	}
}

func TestAnUpdateDropsNoRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(replicas(2), env("GREETING", "one")))
	f.ready()
	url := f.serviceURL()
	load := f.traffic(url)

	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Env["GREETING"] = "two" })
	f.ready()
	f.answers(url+"/config", "env: two")

	image := livecluster.OtherNameOf(cluster.DemoImage)
	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Image = image })
	app := f.ready()
	if app.Status.Image != image {
		t.Errorf("status.image is %q, want %q", app.Status.Image, image)
	}

	f.edit(func(spec *slipwayv1alpha1.WebAppSpec) { spec.Replicas = ptr(int32(1)) })
	f.ready()
	// The pods that were replaced serve until their last connection has gone elsewhere.
	f.Eventually(func() error {
		list := &corev1.PodList{}
		if err := cluster.List(t.Context(), list, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d pods, want one", len(list.Items))
		}
		return nil
	})
	load.Stop("two rollouts and a scaling down")
}

func TestDeletingAnApplicationTakesItsChildrenAndNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unrelated := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: appName}, Data: map[string]string{"a": "b"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}},
		// It looks like a child, but nobody owns it.
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{
				slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, slipwayv1alpha1.LabelWebApp: appName,
			}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		},
	}
	f.Create(unrelated...)
	app := f.app(replicas(2), envFrom("token"))
	f.Create(app)
	f.ready()
	before := map[string]string{}
	for _, object := range unrelated {
		before[object.GetName()] = mustGet(f, object.GetName(), object).GetResourceVersion()
	}

	f.Delete(app)
	for _, child := range []client.Object{&slipwayv1alpha1.WebApp{}, &appsv1.Deployment{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}, &autoscalingv2.HorizontalPodAutoscaler{}} {
		f.Gone(appName, child)
	}
	for _, list := range []client.ObjectList{&appsv1.ReplicaSetList{}, &appsv1.ControllerRevisionList{}, &corev1.PodList{}} {
		f.empty(list)
	}
	for _, object := range unrelated {
		if got := mustGet(f, object.GetName(), object).GetResourceVersion(); got != before[object.GetName()] {
			t.Errorf("%T %q was touched", object, object.GetName())
		}
	}
}

// As `kubectl delete --cascade=orphan` does it. That the operator may see it in another
// order is tried in internal/kit/apply.
func TestAnOrphanedApplicationRunsOnAndIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.app(replicas(2))
	f.Create(app)
	f.ready()
	before := f.identities()
	load := f.traffic(f.serviceURL())

	if err := cluster.Delete(t.Context(), app, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	f.Gone(appName, &slipwayv1alpha1.WebApp{})
	if diff := cmp.Diff(before, f.identities()); diff != "" {
		t.Errorf("not everything stayed (-want +got):\n%s", diff)
	}

	next := f.app(replicas(2))
	f.Create(next)
	f.ready()
	if !metav1.IsControlledBy(f.deployment(), next) {
		t.Error("the next application of the name has not taken the Deployment over")
	}
	if diff := cmp.Diff(before, f.identities()); diff != "" {
		t.Errorf("not everything was taken over as it was (-want +got):\n%s", diff)
	}
	load.Stop("an orphaned application and its successor")
}

// identities waits until nothing of the application changes, and returns the UID of
// everything that was made of it.
func (f *fixture) identities() map[string]string {
	f.Helper()
	uids := f.settled()
	for object, version := range uids {
		uids[object], _, _ = strings.Cut(version, "/")
	}
	delete(uids, fmt.Sprintf("%T %s", &slipwayv1alpha1.WebApp{}, appName))
	return uids
}

// empty waits until there are no objects of a kind.
func (f *fixture) empty(list client.ObjectList) {
	f.Helper()
	f.Eventually(func() error {
		if err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d objects are left of %T", n, list)
		}
		return nil
	})
}

func replicas(n int32) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) { app.Spec.Replicas = &n }
}

func env(name string, value slipwayv1alpha1.EnvValue) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) { app.Spec.Env[name] = value }
}

func envFrom(secret string, keys ...string) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) {
		app.Spec.EnvFrom = append(app.Spec.EnvFrom, slipwayv1alpha1.EnvFromSource{
			SecretRef: &slipwayv1alpha1.LocalReference{Name: secret}, Keys: keys,
		})
	}
}

func spec(change func(*slipwayv1alpha1.WebAppSpec)) func(*slipwayv1alpha1.WebApp) {
	return func(app *slipwayv1alpha1.WebApp) { change(&app.Spec) }
}
