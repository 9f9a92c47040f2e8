package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

var errRefused = errors.New("refused")

// fixture is a Source whose stores a test fills.
type fixture struct {
	*Source

	t       *testing.T
	clock   *testingclock.FakeClock
	applied []Config
	refuse  bool            // Apply returns an error
	missing map[string]bool // missing public keys
	stores  map[string]*secretStore
	maps    map[string]*configMapStore
	closed  map[Port]error // the ports that cannot be opened
	failed  map[string]func(error)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: testingclock.NewFakeClock(time.Now()), stores: map[string]*secretStore{}, maps: map[string]*configMapStore{}, failed: map[string]func(error){}}
	f.Source = New(Options{
		Namespace: "shop", Name: "edge", Clock: f.clock, Log: slog.New(slog.DiscardHandler), Board: document.NewBoard(f.clock, "dev"),
		Apply: func(config Config) (map[Port]error, error) {
			if f.refuse {
				return nil, errRefused
			}
			f.applied = append(f.applied, config)
			return f.closed, nil
		},
		MissingKeys: func() map[string]bool { return f.missing },
	})
	f.secrets.watch = func(_ context.Context, name string, store *secretStore, failed func(error)) {
		f.stores[name], f.failed[name] = store, failed
	}
	f.configMaps.watch = func(_ context.Context, name string, store *configMapStore, failed func(error)) {
		f.maps[name], f.failed[name] = store, failed
	}
	return f
}

// must fails the test when a store returns an error.
func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// synced puts these Services and EndpointSlices into the stores, and marks the stores as
// complete.
func (f *fixture) synced(objects ...any) {
	f.t.Helper()
	services, slices := []any{}, []any{}
	for _, object := range objects {
		if _, is := object.(*corev1.Service); is {
			services = append(services, object)
		} else {
			slices = append(slices, object)
		}
	}
	f.must(f.services.Replace(services, ""))
	f.must(f.slices.Replace(slices, ""))
}

// spec puts the APIGateway into its store.
func (f *fixture) spec(uid types.UID, generation int64, text string) {
	f.t.Helper()
	f.must(f.gateways.Update(gatewayObject(f.t, uid, generation, text)))
}

func gatewayObject(t testing.TB, uid types.UID, generation int64, text string) *object {
	t.Helper()
	spec, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &object{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: uid, Generation: generation},
		Spec:       runtime.RawExtension{Raw: json.RawMessage(spec)},
	}
}

// secret sets the content of a Secret.
func (f *fixture) secret(name string, data map[string][]byte) {
	f.t.Helper()
	f.must(f.stores[name].Replace([]any{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}}, ""))
}

// woke reports whether the loop was woken since the last call.
func (f *fixture) woke() bool {
	select {
	case <-f.woken:
		return true
	default:
		return false
	}
}

// says checks what is published: the generation, and for each problem its reason and a part
// of its message.
func (f *fixture) says(generation int64, problems ...string) {
	f.t.Helper()
	got := f.options.Board.Current()
	if got.Generation != generation || len(got.Problems) != len(problems) {
		f.t.Fatalf("got %+v, want generation %d and problems %q", got, generation, problems)
	}
	for i, want := range problems {
		if p := got.Problems[i]; !strings.Contains(fmt.Sprintf("%s %s %s: %s", p.Name, p.Field, p.Reason, p.Message), want) {
			f.t.Errorf("got problem %+v, want %s", p, want)
		}
	}
}

// routes returns the names of the served routes.
func (f *fixture) routes() string {
	if len(f.applied) == 0 {
		return ""
	}
	var names []string
	for _, route := range f.applied[len(f.applied)-1].Proxy.Table.Routes {
		names = append(names, route.Name)
	}
	return strings.Join(names, " ")
}

func serviceObject(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{Ports: ports}}
}

func sliceObject(service, name string, addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(8080))}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	return slice
}

var web = corev1.ServicePort{Name: "web", Port: 80}

// configMap sets the content of a ConfigMap.
func (f *fixture) configMap(name string, data map[string]string) {
	f.t.Helper()
	f.must(f.maps[name].Replace([]any{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}}, ""))
}
