//go:build apitest

package webapp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
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

// TestWritesAreAsFewAsTheyCanBe counts what the operator asks of the API server.
// `make bench-webapp` does the same with thousands of WebApps.
func TestWritesAreAsFewAsTheyCanBe(t *testing.T) {
	const n = 50
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	// What is older than the first status that an operator writes is read once.
	first := f.app()
	f.create(first)
	environment.Eventually(t, func() error { return f.current([]*slipwayv1alpha1.WebApp{first}) })
	f.delete(first)
	apps := make([]*slipwayv1alpha1.WebApp, n)
	for i := range apps {
		apps[i] = f.app()
		apps[i].Name = fmt.Sprintf("shop-%02d", i)
		// The API server keeps an empty value by leaving it out, which is no drift.
		apps[i].Spec.Env = map[string]slipwayv1alpha1.EnvValue{"LOG_LEVEL": "info", "EMPTY": ""}
	}
	// counted returns what the operator asks for because of do, when it asks no more.
	counted := func(do func(*slipwayv1alpha1.WebApp) error) requests.Counts {
		t.Helper()
		before := counter.Counts()
		for _, app := range apps {
			if err := do(app); err != nil {
				t.Fatal(err)
			}
		}
		environment.Eventually(t, func() error { return f.current(apps) })
		// Longer than the details of a status are held back.
		environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
		return counter.Counts().Since(before).In(f.namespace)
	}

	made := counted(func(app *slipwayv1alpha1.WebApp) error { return env.Client.Create(t.Context(), app) })
	if made.Sum(requests.Children) != 3*n || made.Sum(requests.Status) != n || made.Sum(requests.Events, requests.Reads, requests.Lists) != 0 {
		t.Errorf("%d new WebApps cost %v; want 3 children and 1 status each, no event and no live read", n, made)
	}

	made = counted(func(app *slipwayv1alpha1.WebApp) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"registry.example.com/shop:2"}}`))
		return env.Client.Patch(t.Context(), app.DeepCopy(), patch)
	})
	// The draft of what was not rolled out goes, and another one comes.
	if made.Sum(requests.Children) != 3*n || made.Sum(requests.Status) > 2*n || made.Sum(requests.Events, requests.Reads, requests.Lists) != 0 {
		t.Errorf("%d new images cost %v; want 3 children and at most 2 status each, no event and no live read", n, made)
	}

	made = counted(f.deleteDeployment)
	if made.Sum(requests.Children) != n || made.Sum(requests.Reads) != n || made.Sum(requests.Status) > 2*n || made.Sum(requests.Events, requests.Lists) != 0 {
		t.Errorf("%d deleted Deployments cost %v; want 1 child, 1 live read (of the owner) and at most 2 status each, no event", n, made)
	}

	made = counted(f.touch())
	if len(made) != 0 {
		t.Errorf("another look at %d WebApps without anything to do cost %v, want nothing", n, made)
	}
}

// Its content is read to be hashed. That it is as the cache shows it is known from that read.
func TestASecretIsReadOnceForANewWebApp(t *testing.T) {
	counter := &requests.Counter{}
	env.StartOperator(t, counter.Watch)
	f := newFixture(t)
	f.create(f.secret("config", map[string]string{"A": "1"}))
	first := f.app()
	f.create(first)
	environment.Eventually(t, func() error { return f.current([]*slipwayv1alpha1.WebApp{first}) })
	f.delete(first)
	before := counter.Counts()
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "config"}}}
	})
	app.Name = "with-secret"
	f.create(app)
	environment.Eventually(t, func() error { return f.current([]*slipwayv1alpha1.WebApp{app}) })
	environment.Quiet(t, 1500*time.Millisecond, func() string { return counter.Counts().In(f.namespace).String() })
	if made := counter.Counts().Since(before).In(f.namespace); made.Sum(requests.Reads) != 1 || made.Sum(requests.Children) != 3 {
		t.Errorf("a new WebApp with a Secret cost %v; want 3 children and 1 live read", made)
	}
}

// deleteDeployment deletes the Deployment of a WebApp, and returns when there is another.
func (f *fixture) deleteDeployment(app *slipwayv1alpha1.WebApp) error {
	deployment := &appsv1.Deployment{}
	if err := f.get(app.Name, deployment); err != nil {
		return err
	}
	deleted := deployment.UID
	f.delete(deployment)
	environment.Eventually(f, func() error {
		if err := f.get(app.Name, deployment); err != nil {
			return err
		}
		if deployment.UID == deleted {
			return fmt.Errorf("Deployment %q is still the one that was deleted", app.Name)
		}
		return nil
	})
	return nil
}

// current tells whether every status speaks of the current spec.
func (f *fixture) current(apps []*slipwayv1alpha1.WebApp) error {
	list := &slipwayv1alpha1.WebAppList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	if len(list.Items) != len(apps) {
		return fmt.Errorf("there are %d WebApps, want %d", len(list.Items), len(apps))
	}
	for i := range list.Items {
		if app := &list.Items[i]; app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("the status of %q speaks of an older generation", app.Name)
		}
	}
	return nil
}

// touch returns a change that makes the operator look at a WebApp again and leaves
// it nothing to do: another client annotates the WebApp and its Deployment. It returns
// after the reconcile.
func (f *fixture) touch() func(*slipwayv1alpha1.WebApp) error {
	touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/touched":"yes"}}}`))
	return func(app *slipwayv1alpha1.WebApp) error {
		for _, object := range []client.Object{
			&slipwayv1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}},
		} {
			before := reconciles()
			if err := env.Client.Patch(f.Context(), object, touch, client.FieldOwner("somebody")); err != nil {
				return err
			}
			environment.Eventually(f, func() error {
				if reconciles() == before {
					return fmt.Errorf("no reconcile of WebApp %q", app.Name)
				}
				return nil
			})
		}
		return nil
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

// What has a name that a child needs is looked for after a restart, and nothing is tried.
func TestATakenNameCostsNoWriteAtARestart(t *testing.T) {
	tests := map[string][]string{
		"of a Deployment":  {"Deployment"},
		"of a Service":     {"Service"},
		"of two, told one": {"PodDisruptionBudget", "Service"},
	}
	for name, kinds := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := env.StartOperator(t, nil, f.namespace)
			for _, kind := range kinds {
				f.create(f.foreign()[kind])
			}
			f.create(f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](2) }))
			f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
			f.settle()
			first.Stop(t)

			counter := &requests.Counter{}
			env.StartOperator(t, counter.Watch, f.namespace)
			made := func() requests.Counts { return counter.Counts().In(f.namespace) }
			environment.Eventually(t, func() error {
				if made().Sum(requests.Reads) < len(kinds) {
					return fmt.Errorf("it asked for %v: it has not looked yet", made())
				}
				return nil
			})
			environment.Quiet(t, 1500*time.Millisecond, func() string { return made().String() })
			if made().Writes() != 0 {
				t.Errorf("a restart cost %v, want no write", made())
			}
		})
	}
}

// An operator that starts against an API server whose cache is stale is shown an earlier
// spec. It must not act on it: the pods would be rolled back, and forward again.
func TestAnEarlierSpecIsNotActedOn(t *testing.T) {
	f := newFixture(t)
	first := env.StartOperator(t, nil, f.namespace)
	app := f.app()
	f.create(app)
	f.deployed(runsImage(app.Spec.Image))
	f.settle()
	earlier := app.DeepCopy()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "registry.example.com/shop:2" })
	f.deployed(runsImage("registry.example.com/shop:2"))
	first.Stop(t)
	gate := fault.NewGate(nil)
	env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = []string{f.namespace}
		gate.Wrap(config)
		options.NewCache = fault.NewCacheDelay(map[string]fault.View{"WebApp": {Past: earlier.ResourceVersion, PastFor: time.Second}}).NewCache
	})
	f.rollOut()
	f.settle()
	for _, w := range gate.Writes() {
		if w.Resource == "deployments" {
			t.Errorf("the Deployment was written, though it was as the spec says: %s", w.Body)
		}
	}
}

// The same with the Deployment: it must not be said to be ready while it is another one
// by now.
func TestStatusIsNotWrittenOfAnEarlierDeployment(t *testing.T) {
	f := newFixture(t)
	first := env.StartOperator(t, nil, f.namespace)
	app := f.running()
	image := app.Spec.Image
	earlier := f.settle()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "registry.example.com/shop:2" })
	f.deployed(runsImage("registry.example.com/shop:2"))
	first.Stop(t)
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = image })
	gate := fault.NewGate(nil)
	env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = []string{f.namespace}
		gate.Wrap(config)
		options.NewCache = fault.NewCacheDelay(map[string]fault.View{"Deployment": {Past: earlier.ResourceVersion, PastFor: time.Second}}).NewCache
	})
	f.deployed(runsImage(image))
	for _, w := range gate.Writes() {
		if w.Resource == "deployments" {
			return
		}
		if w.Verb == "delete" && w.Resource == "controllerrevisions" {
			// The spec is the present one, and does not ask for what was being rolled out.
			continue
		}
		t.Errorf("written before the Deployment was put right: %s %s", w, w.Body)
	}
	t.Error("the Deployment was never written")
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// What repairs a port whose number somebody changed patches metadata. The client would watch the
// metadata of all Services from then on.
func TestARepairStartsNoWatch(t *testing.T) {
	f := newFixture(t)
	counter := &requests.Counter{}
	var watches atomic.Int64
	// In its own namespace alone: foreign objects that earlier tests left behind are watched for
	// themselves, and by their metadata too.
	env.StartOperator(t, func(config *rest.Config) {
		counter.Watch(config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				// A cache that exists may watch again at any time. It asks for whole objects.
				if strings.HasSuffix(request.URL.Path, "/services") && strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
					watches.Add(1)
				}
				return next.RoundTrip(request)
			})
		})
	}, f.namespace)
	app := f.app()
	f.create(app)
	environment.Eventually(t, func() error { return f.current([]*slipwayv1alpha1.WebApp{app}) })
	service := &corev1.Service{}
	key := types.NamespacedName{Namespace: f.namespace, Name: app.Name}
	if err := env.Client.Get(t.Context(), key, service); err != nil {
		t.Fatal(err)
	}
	before, number := counter.Counts(), service.Spec.Ports[0].Port
	service.Spec.Ports[0].Port = 9
	if err := env.Client.Update(t.Context(), service, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), key, service); err != nil {
			return err
		}
		if port := service.Spec.Ports[0].Port; port != number {
			return fmt.Errorf("the port is %d, want %d", port, number)
		}
		return nil
	})
	asked := counter.Counts().Since(before)
	if asked[requests.Kind{Verb: "patch", Resource: "services", Namespace: f.namespace}] == 0 {
		t.Errorf("the repair patched no metadata: %v", asked)
	}
	if n := watches.Load(); n > 0 {
		t.Errorf("%d lists and watches of the metadata of Services because of a repair", n)
	}
}
