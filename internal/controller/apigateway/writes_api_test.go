//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// asked returns what the operator asks for because of do, when it asks no more.
func (f *fixture) asked(counter *requests.Counter, do func()) requests.Counts {
	f.Helper()
	before := counter.Counts()
	do()
	environment.Eventually(f, func() error {
		gateway := &slipwayv1alpha1.APIGateway{}
		if err := f.get("edge", gateway); err != nil {
			return err
		}
		if gateway.Status.ObservedGeneration != gateway.Generation {
			return errors.New("status speaks of an older generation")
		}
		return nil
	})
	// Longer than status waits for pods.
	environment.Quiet(f, 3*quiet, func() string { return counter.Counts().In(f.namespace).String() })
	return counter.Counts().Since(before).In(f.namespace)
}

func TestWritesAreAsFewAsTheyCanBe(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	first := f.startOperator(counter.Watch)
	gateway := f.gateway()
	f.create(f.service("user-service"), f.service("product-service"))

	made := f.asked(counter, func() { f.create(gateway) })
	// What is older than the first status that an operator writes is read once: the gateway.
	if made.Sum(requests.Children) != 7 || made.Sum(requests.Status) != 1 || made.Sum(requests.Reads) != 1 || made.Sum(requests.Lists) != 0 {
		t.Errorf("the first gateway cost %v; want 7 children, 1 status and 1 live read", made)
	}
	f.rollOut()

	made = f.asked(counter, func() {
		update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.Routes = append(g.Spec.Routes, route("api.example.com", "/more/", "user-service"))
		})
	})
	if made.Sum(requests.Children, requests.Reads, requests.Lists) != 0 || made.Sum(requests.Status) != 1 {
		t.Errorf("a new route of a known host cost %v; want 1 status and nothing else", made)
	}
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")

	if made = f.asked(counter, f.touch); made.Sum(requests.Children, requests.Status, requests.Reads, requests.Lists) != 0 {
		t.Errorf("another look without anything to do cost %v, want nothing", made)
	}

	first.Stop(t)
	again := &requests.Counter{}
	made = f.asked(again, func() {
		f.startOperator(again.Watch)
		f.touch()
	})
	if made.Writes() != 0 || made.Sum(requests.Reads) != 0 {
		t.Errorf("after a restart it cost %v, want nothing but what fills the caches", made)
	}
}

// What has a name that a child needs is looked for after a restart, and nothing is tried.
func TestATakenNameCostsNoWriteAtARestart(t *testing.T) {
	f := newFixture(t)
	first := f.startOperator(nil)
	taken := metav1.ObjectMeta{Name: "edge", Namespace: f.namespace}
	ports := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}
	f.create(&corev1.Service{ObjectMeta: taken, Spec: ports}, &corev1.ServiceAccount{ObjectMeta: taken}, f.gateway())
	f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
	f.settle()
	first.Stop(t)

	counter := &requests.Counter{}
	made := f.asked(counter, func() {
		f.startOperator(counter.Watch)
		f.touch()
	})
	if made.Writes() != 0 || made.Sum(requests.Reads) < 2 {
		t.Errorf("after a restart it cost %v, want no write, and a look for what is in the way", made)
	}
}

// touch makes the operator look at the gateway again and leaves it nothing to do. It
// returns after the reconcile.
func (f *fixture) touch() {
	f.Helper()
	meta := metav1.ObjectMeta{Namespace: f.namespace, Name: "edge"}
	for _, object := range []client.Object{&slipwayv1alpha1.APIGateway{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta}} {
		before := reconciles()
		body := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":"%d"}}}`, before)
		if err := env.Client.Patch(f.Context(), object, client.RawPatch(types.MergePatchType, body), client.FieldOwner("somebody")); err != nil {
			f.Fatal(err)
		}
		environment.Eventually(f, func() error {
			if reconciles() == before {
				return errors.New("no reconcile")
			}
			return nil
		})
	}
}

// reconciles is how often Reconcile has returned in this process.
func reconciles() int {
	// A collector of an operator that has stopped cannot answer any more; the others do.
	families, _ := crmetrics.Registry.Gather()
	count := 0
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				count += int(m.GetCounter().GetValue())
			}
		}
	}
	return count
}

// An operator that starts against an API server whose cache is stale is shown an earlier
// Deployment. Status must not say that it is as the spec asks: it is another one by now.
func TestStatusIsNotWrittenOfAnEarlierDeployment(t *testing.T) {
	f := newFixture(t)
	first := f.startOperator(nil)
	gateway := f.running(func(g *slipwayv1alpha1.APIGateway) { g.Spec.Image = "gateway:1" })
	f.settle()
	earlier := &appsv1.Deployment{}
	if err := f.get("edge", earlier); err != nil {
		t.Fatal(err)
	}
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Image = "gateway:2" })
	f.deployed("gateway:2")
	first.Stop(t)
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Image = "gateway:1" })
	gate := fault.NewGate(nil)
	env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		gate.Wrap(config)
		options.Namespaces = []string{f.namespace}
		options.GatewayAdminPort = f.cluster.Gateways.Port
		options.NewCache = fault.NewCacheDelay(map[string]fault.View{"Deployment": {Past: earlier.ResourceVersion, PastFor: 3 * time.Second}}).NewCache
	})
	f.deployed("gateway:1")
	for _, w := range gate.Writes() {
		if w.Resource == "deployments" {
			return
		}
		t.Errorf("written before the Deployment was put right: %s %s", w, w.Body)
	}
	t.Error("the Deployment was never written")
}

// deployed waits until the Deployment has an image.
func (f *fixture) deployed(image string) {
	f.Helper()
	environment.Eventually(f, func() error {
		deployment := &appsv1.Deployment{}
		if err := f.get("edge", deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the Deployment has the image %s", got)
		}
		return nil
	})
}
