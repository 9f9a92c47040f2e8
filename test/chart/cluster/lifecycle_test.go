//go:build chartcluster

package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// heldName is an application that is on its way out while the operator is away.
	heldName  = "held"
	finalizer = "example.com/takes-time"
)

// From install.yaml of the last release to the chart, upgraded, rolled back, uninstalled and
// installed again, as docs/install.md says. Nobody who sends requests notices.
func TestNoRequestFailsThroughUpgradeRollbackAndUninstallOfTheChart(t *testing.T) {
	w := begin(t)
	w.installLastRelease()
	before, pods := w.objects(), w.appPods()
	load := w.load()
	untouched := func(after string) {
		t.Helper()
		now := w.objects()
		maps.DeleteFunc(now, func(name string, _ any) bool { return before[name] == nil }) // a release brings definitions of its own
		if diff := cmp.Diff(before, now); diff != "" {
			t.Errorf("after %s the objects are others (-before +now):\n%s", after, diff)
		}
		if diff := cmp.Diff(pods, w.appPods()); diff != "" {
			t.Errorf("after %s the application has other pods (-before +now):\n%s", after, diff)
		}
	}

	w.step("install.yaml to the chart")
	w.helm("install", today("--take-ownership")...)
	w.settled(this())
	untouched("install.yaml to the chart")

	w.step("upgrade with changed values")
	w.helm("upgrade", chartFolder, "--reset-then-reuse-values", "--force-conflicts", "--set", "replicas=3,resources.limits.memory=768Mi")
	w.operatorHas(3, "768Mi")
	w.settled(this())
	untouched("an upgrade with changed values")

	w.step("refused: an older chart, and a rollback to it")
	generation := w.operator().Generation
	w.refused("upgrade", old("--reset-then-reuse-values")...)
	w.refused("rollback", "3", "--force-conflicts")
	if now := w.operator().Generation; now != generation {
		t.Errorf("the operator's Deployment has generation %d, had %d: what was refused has changed it", now, generation)
	}
	w.helm("rollback", "2", "--force-conflicts")
	w.operatorHas(3, "768Mi")
	untouched("a refused rollback")

	w.step("older programs with the newer definitions, and back")
	w.helm("upgrade", old("--reset-then-reuse-values", "--set", "crds.install=false")...)
	w.settled(last())
	untouched("a change to the older programs")
	w.helm("upgrade", today("--reset-then-reuse-values", "--set", "crds.install=true")...)
	w.operatorHas(3, "768Mi")
	w.settled(this())
	untouched("a change back from the older programs")

	w.step("uninstall")
	w.deleteHeld()
	w.helm("uninstall")
	if w.operator() != nil {
		t.Error("the operator is there after the uninstall")
	}
	w.serveAlone(load)
	untouched("the uninstall")
	w.changeWhileAway()
	before = w.objects()

	w.step("install again")
	w.helm("install", today()...)
	w.settled(this())
	w.answers(w.url(gatewayName, "/later/1"), "path: /later/1")
	untouched("the second install")
	for _, l := range load {
		l.Stop("install.yaml to the chart, on, back, away and back again")
	}

	w.step("delete what has a finalizer")
	w.deletionCompletes()
}

// step says in the log when one began, to find what a failed request belongs to.
func (w *world) step(name string) { w.Logf("%s: %s", time.Now().Format("15:04:05.000"), name) }

// installLastRelease installs v0.1.0 as its README said, with an application, a gateway, and
// an application that a finalizer holds.
func (w *world) installLastRelease() {
	w.Helper()
	w.kubectl("apply", "--server-side", "-f", os.Getenv("OLD_RELEASE")+"/install.yaml")
	w.kubectl("rollout", "status", "deployment/slipway-operator", "-n", system, "--timeout=120s")
	shop, secret := app(2)
	held, edge := shop.DeepCopy(), gateway(2)
	held.Name, held.Finalizers, edge.Finalizers = heldName, []string{finalizer}, []string{finalizer}
	one := int32(1)
	held.Spec.Replicas = &one
	w.Create(secret, shop, held)
	// The webhook is called as soon as the network knows where it is.
	w.Eventually(func() error {
		edge.Namespace = w.Namespace
		return client.IgnoreAlreadyExists(cluster.Create(w.Context(), edge))
	})
	w.settled(last())
	w.answers(w.url(heldName, "/"), "from a Secret")
}

// load sends requests to the Service, and to the gateway with a connection for each request
// and with one that is kept: up to 50 of each a second.
func (w *world) load() []*livetest.Traffic {
	single := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	kept := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	w.Cleanup(kept.CloseIdleConnections)
	w.answers(w.url(gatewayName, "/shop/1"), "path: /shop/1")
	return []*livetest.Traffic{
		w.Traffic(single, w.url(appName, "/shop/1")),
		w.Traffic(single, w.url(gatewayName, "/shop/1")),
		w.Traffic(kept, w.url(gatewayName, "/shop/1")),
	}
}

// objects returns what is the user's of every object of Slipway, and the identity of what
// has to outlive every release: the objects, their definitions, and what they run.
func (w *world) objects() map[string]any {
	w.Helper()
	all := map[string]any{}
	for _, kind := range []schema.GroupVersionKind{
		slipwayv1alpha1.SchemeGroupVersion.WithKind("WebApp"),
		slipwayv1alpha1.SchemeGroupVersion.WithKind("APIGateway"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		for _, object := range list(w.Context(), w, kind) {
			all[kind.Kind+" "+object.GetName()] = remains(w.Namespace, &object)
		}
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// remains returns what must not change of an object, or nil when it is none of the test's.
func remains(namespace string, object *unstructured.Unstructured) any {
	switch {
	case object.GetNamespace() == "" && strings.HasSuffix(object.GetName(), ".slipway.dev"):
		return object.GetUID()
	case object.GetNamespace() != namespace:
		return nil
	case object.GroupVersionKind().Group != slipwayv1alpha1.SchemeGroupVersion.Group:
		return object.GetUID()
	}
	return []any{object.GetUID(), object.GetFinalizers(), object.GetLabels(), object.GetAnnotations(), object.Object["spec"]}
}

// appPods returns the pods of both applications, with how often their containers restarted.
func (w *world) appPods() map[types.UID]int32 {
	w.Helper()
	pods := map[types.UID]int32{}
	for _, name := range []string{appName, heldName} {
		for _, pod := range w.podsOf(slipwayv1alpha1.LabelWebApp, name) {
			pods[pod.UID] = livecluster.Restarts([]corev1.Pod{pod})
		}
	}
	return pods
}

// operator returns the operator's Deployment, nil where there is none.
func (w *world) operator() *appsv1.Deployment {
	w.Helper()
	deployment := &appsv1.Deployment{}
	err := cluster.Get(w.Context(), types.NamespacedName{Namespace: system, Name: "slipway-operator"}, deployment)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	return deployment
}

// operatorHas checks what the values say.
func (w *world) operatorHas(replicas int32, memory string) {
	w.Helper()
	spec := w.operator().Spec
	if got := spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); *spec.Replicas != replicas || got != memory {
		w.Errorf("the operator has %d replicas and %s, want %d and %s", *spec.Replicas, got, replicas, memory)
	}
}

// deleteHeld deletes the application that a finalizer holds.
func (w *world) deleteHeld() {
	w.Helper()
	w.Delete(&slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Name: heldName}})
}

// serveAlone waits until no operator is left and there were some seconds of requests since.
func (w *world) serveAlone(load []*livetest.Traffic) {
	w.Helper()
	w.Eventually(func() error {
		pods := &corev1.PodList{}
		if err := cluster.List(w.Context(), pods, client.InNamespace(system)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("the operator has %d pods", len(pods.Items))
		}
		return nil
	})
	for _, l := range load {
		enough := l.Sent() + 250
		w.Eventually(func() error {
			if l.Sent() < enough {
				return fmt.Errorf("%d requests, want %d", l.Sent(), enough)
			}
			return nil
		})
	}
}

// changeWhileAway adds a route while there is no operator. It is the next one's work.
func (w *world) changeWhileAway() {
	w.Helper()
	edge := livetest.Update(w.Fixture, gatewayName, &slipwayv1alpha1.APIGateway{}, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Routes = append(g.Spec.Routes, slipwayv1alpha1.Route{
			Path: "/later/", BackendService: &slipwayv1alpha1.BackendService{Name: appName, Port: 8080},
		})
	})
	if edge.Status.ObservedGeneration == edge.Generation {
		w.Error("somebody has seen a change while there was no operator")
	}
}

// deletionCompletes lets go of both objects that finalizers hold. They go, with their pods.
func (w *world) deletionCompletes() {
	w.Helper()
	held := livetest.MustGet(w.Fixture, heldName, &slipwayv1alpha1.WebApp{})
	if held.DeletionTimestamp.IsZero() {
		w.Error("what was deleted before the uninstall is not on its way out any more")
	}
	edge := livetest.MustGet(w.Fixture, gatewayName, &slipwayv1alpha1.APIGateway{})
	w.Delete(edge)
	for _, object := range []client.Object{held, edge} {
		livetest.Update(w.Fixture, object.GetName(), object, func(o client.Object) {
			if !slices.Contains(o.GetFinalizers(), finalizer) || o.GetDeletionTimestamp().IsZero() {
				w.Errorf("%T %q has the finalizers %v and was deleted at %v", o, o.GetName(), o.GetFinalizers(), o.GetDeletionTimestamp())
			}
			o.SetFinalizers(nil)
		})
		w.Gone(object.GetName(), object)
	}
	w.Eventually(func() error {
		if pods := append(w.podsOf(slipwayv1alpha1.LabelWebApp, heldName), w.podsOf(slipwayv1alpha1.LabelAPIGateway, gatewayName)...); len(pods) > 0 {
			return fmt.Errorf("%d pods of what was deleted are there", len(pods))
		}
		return nil
	})
	if err := livecluster.Eventually(context.WithoutCancel(w.Context()), time.Second, w.appReady); err != nil {
		w.Error(err)
	}
}
