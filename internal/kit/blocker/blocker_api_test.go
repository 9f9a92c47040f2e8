//go:build apitest

package blocker_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/blocker"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is Watches at work, and whom they tell.
type fixture struct {
	*testing.T
	watches   *blocker.Watches
	namespace string
	reported  chan types.NamespacedName
	stop      func()
}

func newFixture(t *testing.T, limit int) *fixture {
	t.Helper()
	http, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return newFixtureWith(t, http, limit)
}

func newFixtureWith(t *testing.T, http *http.Client, limit int) *fixture {
	t.Helper()
	watches, err := blocker.New(env.Config, http, env.Client.RESTMapper(), limit)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{T: t, watches: watches, namespace: env.Namespace(t), reported: make(chan types.NamespacedName, 100)}
	watches.Notify(func(owner types.NamespacedName) { f.reported <- owner })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watches.Start(ctx) }()
	f.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(f.stop)
	return f
}

// service makes a Service, and returns it as it is named to Keep.
func (f *fixture) service(name string) (*corev1.Service, *metav1.PartialObjectMetadata) {
	f.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if err := env.Client.Create(f.Context(), service); err != nil {
		f.Fatal(err)
	}
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace, UID: service.UID}}
	seen.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return service, seen
}

func (f *fixture) delete(object client.Object) {
	f.Helper()
	if err := env.Client.Delete(f.Context(), object); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) expect(owner types.NamespacedName) {
	f.Helper()
	select {
	case got := <-f.reported:
		if got != owner {
			f.Fatalf("told %q, want %q", got, owner)
		}
	case <-time.After(10 * time.Second):
		f.Fatalf("%q was not told", owner)
	}
}

var (
	shop = types.NamespacedName{Namespace: "n", Name: "shop"}
	mart = types.NamespacedName{Namespace: "n", Name: "mart"}
)

func TestAnOwnerIsToldWhenWhatIsInTheWayHasGone(t *testing.T) {
	f := newFixture(t, 0)
	service, seen := f.service("shop")
	other, _ := f.service("other")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})

	f.delete(other)
	f.delete(service)
	start := time.Now()
	f.expect(shop)
	t.Logf("told after %v", time.Since(start).Round(time.Millisecond))
}

func TestAnOwnerIsToldOfWhatWentBeforeTheWatchBegan(t *testing.T) {
	f := newFixture(t, 0)
	service, seen := f.service("shop")
	f.delete(service)
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	f.expect(shop)
}

func TestAnOwnerIsToldOfAnotherObjectOfTheName(t *testing.T) {
	f := newFixture(t, 0)
	service, seen := f.service("shop")
	f.delete(service)
	f.service("shop")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	f.expect(shop)
}

func TestAnOwnerIsToldOfAnotherOwnerAndOfNoOtherChange(t *testing.T) {
	f := newFixture(t, 0)
	service, seen := f.service("shop")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	for i := range 20 {
		service.Annotations = map[string]string{"count": fmt.Sprint(i)}
		if err := env.Client.Update(t.Context(), service); err != nil {
			t.Fatal(err)
		}
	}
	service.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "it", UID: "1"}}
	if err := env.Client.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	f.expect(shop)
	f.delete(service)
	f.expect(shop)
	if len(f.reported) > 0 {
		t.Errorf("told %d more times", len(f.reported))
	}
}

func TestWhatIsNoLongerInTheWayIsNotWatched(t *testing.T) {
	f := newFixture(t, 0)
	service, seen := f.service("shop")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	f.watches.Keep(t.Context(), mart, []*metav1.PartialObjectMetadata{seen})
	f.watches.Keep(t.Context(), mart, []*metav1.PartialObjectMetadata{seen})
	if got := f.watches.Watched(); got != 2 {
		t.Errorf("%d are watched, want one for each owner", got)
	}
	f.watches.Keep(t.Context(), shop, nil)
	f.delete(service)
	f.expect(mart)
	if len(f.reported) > 0 {
		t.Errorf("%q was told, which is blocked no more", <-f.reported)
	}
}

func TestWatchesAreBoundedAndAPlaceIsGivenAgain(t *testing.T) {
	f := newFixture(t, 1)
	_, first := f.service("first")
	second, seen := f.service("second")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{first})
	f.watches.Keep(t.Context(), mart, []*metav1.PartialObjectMetadata{seen})
	if got := f.watches.Watched(); got != 1 {
		t.Fatalf("%d are watched, want 1", got)
	}
	f.watches.Keep(t.Context(), shop, nil)
	f.watches.Keep(t.Context(), mart, []*metav1.PartialObjectMetadata{seen})
	f.delete(second)
	f.expect(mart)
}

// Many objects are in the way of the owners of one namespace. What is in the way of another namespace's is watched all the same.
func TestANamespaceLeavesAPlaceForAnother(t *testing.T) {
	f := newFixture(t, 4)
	for n := range 6 {
		_, seen := f.service(fmt.Sprint("greedy-", n))
		f.watches.Keep(t.Context(), types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(n)}, []*metav1.PartialObjectMetadata{seen})
	}
	if got := f.watches.Watched(); got != 2 {
		t.Errorf("%d are watched for one namespace, want 2", got)
	}
	service, seen := f.service("quiet")
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	f.delete(service)
	f.expect(shop)
}

// A watch of an API server that is away ends like any other.
func TestNothingIsLeftBehind(t *testing.T) {
	f := newFixture(t, 0)
	_, seen := f.service("shop")
	away := *seen
	away.Name = "away"
	f.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen, &away})
	f.expect(shop)
	refused := newFixtureWith(t, &http.Client{Transport: refusing{}}, 0)
	refused.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	for _, each := range []*fixture{f, refused} {
		each.stop()
		each.watches.Keep(t.Context(), shop, []*metav1.PartialObjectMetadata{seen})
	}
	// A reflector ends before the list that it asked for: the goroutine of the list ends soon after it.
	environment.Eventually(t, nothingRuns)
}

// nothingRuns tells whether a goroutine of Watches is left.
func nothingRuns() error {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "blocker.(*Watches)") {
			return fmt.Errorf("a goroutine is left:\n%s", stack)
		}
	}
	return nil
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("the API server is away")
}
