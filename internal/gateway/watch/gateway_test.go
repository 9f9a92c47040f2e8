package watch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// gatewayFixture is a GatewaySource whose stores a test fills.
type gatewayFixture struct {
	*GatewaySource

	t       *testing.T
	clock   *testingclock.FakeClock
	applied []GatewayConfig
	closed  map[Port]error
	failed  map[string]func(error) // of Secrets
}

func newGatewayFixture(t *testing.T, namespaces ...string) *gatewayFixture {
	t.Helper()
	f := &gatewayFixture{t: t, clock: testingclock.NewFakeClock(time.Now()), failed: map[string]func(error){}}
	f.GatewaySource = NewGateway(GatewayOptions{
		Namespace: "infra", Name: "edge", Namespaces: namespaces, BorrowedCertificates: "edge-certificates", Clock: f.clock,
		Log: slog.New(slog.DiscardHandler), Board: document.NewBoard(f.clock, "dev"),
		Apply: func(config GatewayConfig) (map[Port]error, error) {
			f.applied = append(f.applied, config)
			return f.closed, nil
		},
	})
	idle := func(context.Context, string, *objectStore[*route], func(error)) {}
	for _, routes := range f.routesOfKinds() {
		routes.watch = idle
	}
	f.grants.watch = func(context.Context, string, *objectStore[grant], func(error)) {}
	f.policies.watch = func(context.Context, string, *objectStore[*policy], func(error)) {}
	f.sets.watch = func(context.Context, string, *objectStore[*listenerSet], func(error)) {}
	f.attached.watch = func(context.Context, string, *objectStore[*attachedPolicy], func(error)) {}
	f.namespaces.watch = func(context.Context, string, *store[*corev1.Namespace, map[string]string], func(error)) {}
	f.services.watch = func(context.Context, string, *store[*corev1.Service, service], func(error)) {}
	f.slices.watch = func(context.Context, string, *store[*discoveryv1.EndpointSlice, slice], func(error)) {}
	f.secrets.watch = func(_ context.Context, name string, _ *secretStore, failed func(error)) { f.failed[name] = failed }
	f.look(t.Context())
	return f
}

func (f *gatewayFixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func gatewayAPIObject(t testing.TB, namespace, name string, generation int64, text string) *object {
	t.Helper()
	spec, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &object{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Generation: generation},
		Spec:       runtime.RawExtension{Raw: spec},
	}
}

// gateway puts the Gateway into its store.
func (f *gatewayFixture) gateway(generation int64, spec string) {
	f.t.Helper()
	f.must(f.gateways.Update(gatewayAPIObject(f.t, "infra", "edge", generation, spec)))
}

// synced marks the stores of routes and grants as complete, with these HTTPRoutes.
func (f *gatewayFixture) synced(routes ...any) {
	f.t.Helper()
	for key := range f.everyone {
		f.must(f.httpRoutes.watched[key].store.Replace(routes, ""))
		for _, others := range f.routesOfKinds()[1:] {
			f.must(others.watched[key].store.Replace(nil, ""))
		}
		f.must(f.grants.watched[key].store.Replace(nil, ""))
		f.must(f.policies.watched[key].store.Replace(nil, ""))
		f.must(f.sets.watched[key].store.Replace(nil, ""))
		f.must(f.attached.watched[key].store.Replace(nil, ""))
	}
}

// backend completes the watches of a namespace, with a Service "app".
func (f *gatewayFixture) backend(namespace string) {
	f.t.Helper()
	service, endpoints := serviceObject("app", web), sliceObject("app", "app-1", "10.0.0.1")
	service.Namespace, endpoints.Namespace = namespace, namespace
	f.must(f.services.watched[namespace].store.Replace([]any{service}, ""))
	f.must(f.slices.watched[namespace].store.Replace([]any{endpoints}, ""))
}

func (f *gatewayFixture) watchedNamespaces() string {
	var keys []string
	for key := range f.services.watched {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

const plainListener = `{gatewayClassName: slipway, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}`

func routeTo(t *testing.T, namespace, name string, generation int64) *object {
	t.Helper()
	return gatewayAPIObject(t, namespace, name, generation, `{parentRefs: [{name: edge, namespace: infra}], rules: [{backendRefs: [{name: app, port: 80}]}]}`)
}

func TestOnlyNamespacesThatRoutesNameAreWatched(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	other := gatewayAPIObject(t, "c", "other", 1, `{parentRefs: [{name: another, namespace: infra}], rules: [{backendRefs: [{name: app, port: 80}]}]}`)
	f.synced(routeTo(t, "a", "one", 1), other)
	f.look(t.Context())
	if got := f.watchedNamespaces(); got != "a" || len(f.applied) != 0 {
		t.Fatalf("watches %q, applied %d", got, len(f.applied))
	}
	f.backend("a")
	f.look(t.Context())
	if len(f.applied) != 1 || len(f.board.Current().Problems) != 0 {
		t.Fatalf("applied %d times, says %+v", len(f.applied), f.board.Current())
	}
	// The next route is served when its namespace was read.
	f.must(f.httpRoutes.watched[""].store.Update(routeTo(t, "b", "two", 1)))
	f.look(t.Context())
	if got := f.board.Current().Routes; len(got) != 1 {
		t.Errorf("says %q", got)
	}
	f.backend("b")
	f.look(t.Context())
	if got := f.board.Current(); len(got.Routes) != 2 || len(got.Problems) != 0 {
		t.Errorf("says %+v", got)
	}
	f.must(f.httpRoutes.watched[""].store.Delete(routeTo(t, "a", "one", 1)))
	f.look(t.Context())
	f.look(t.Context())
	if got := f.watchedNamespaces(); got != "b" {
		t.Errorf("watches %q", got)
	}
}

func TestANamespaceThatDoesNotAnswerHoldsNothingUpForLong(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	again := f.look(t.Context())
	if len(f.applied) != 0 || again.IsZero() {
		t.Fatalf("applied %d, again at %v", len(f.applied), again)
	}
	f.clock.SetTime(again)
	f.look(t.Context())
	if got := f.board.Current(); len(f.applied) != 1 || len(got.Problems) == 0 || got.Problems[0].Reason != "BackendNotFound" {
		t.Errorf("applied %d, says %+v", len(f.applied), got)
	}
}

func TestManyNamespacesAreWatchedTogether(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	var routes []any
	for i := range maxNamespaces + 1 {
		routes = append(routes, routeTo(t, "n"+strings.Repeat("x", i), "route", 1))
	}
	f.synced(routes...)
	f.look(t.Context())
	if got := f.watchedNamespaces(); got != "" || len(f.services.watched) != 1 {
		t.Errorf("watches %q", got)
	}
}

func TestOnlyTheNamespacesOfTheOptionsAreRead(t *testing.T) {
	f := newGatewayFixture(t, "a", "infra")
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	var keys []string
	for key := range f.httpRoutes.watched {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	if got := strings.Join(keys, " "); got != "a infra" || f.watchedNamespaces() != "a" {
		t.Errorf("routes of %q, Services of %q", got, f.watchedNamespaces())
	}
}

func TestAPortThatCannotBeOpenedIsToldAndTriedAgain(t *testing.T) {
	f := newGatewayFixture(t)
	f.closed = map[Port]error{{80, proxy.PortHTTP}: errors.New("address in use")}
	f.gateway(1, plainListener)
	f.synced()
	again := f.look(t.Context())
	if got := f.board.Current(); again != f.clock.Now().Add(portPause) || len(got.Listeners) != 0 || len(got.Problems) != 1 || got.Problems[0].Reason != "PortUnavailable" {
		t.Errorf("again at %v, says %+v", again, got)
	}
	f.closed = nil
	if again := f.look(t.Context()); !again.IsZero() {
		t.Errorf("again at %v", again)
	}
	if got := f.board.Current(); len(got.Listeners) != 1 || len(got.Problems) != 0 {
		t.Errorf("says %+v", got)
	}
}

func TestAGatewayWithAnUnknownFieldIsRejectedUnlessItConcernsTheOperator(t *testing.T) {
	f := newGatewayFixture(t)
	f.synced()
	f.gateway(1, plainListener)
	f.look(t.Context())
	for i, field := range []string{"tls: {frontend: {default: {audit: true}}}", "access: none"} {
		f.gateway(int64(2+i), strings.Replace(plainListener, "{", "{"+field+", ", 1))
		f.look(t.Context())
		if got := f.board.Current(); got.Generation != 1 || got.Rejected == nil || got.Rejected.Generation != int64(2+i) {
			t.Errorf("%s: says %+v", field, got)
		}
	}
	f.gateway(9, strings.Replace(plainListener, "{", "{infrastructure: {pods: many}, ", 1))
	f.look(t.Context())
	if got := f.board.Current(); got.Generation != 9 || got.Rejected != nil || len(got.Listeners) != 1 {
		t.Errorf("says %+v", got)
	}
	f.gateway(10, strings.Replace(plainListener, "name: http", "name: http, limit: 3", 1))
	f.look(t.Context())
	if got := f.board.Current(); got.Generation != 10 || len(got.Listeners) != 0 {
		t.Errorf("says %+v", got)
	}
}

func TestRoutesOfOthersCostTheirName(t *testing.T) {
	keep := keepRoute(gatewayapi.HTTPRoute, types.NamespacedName{Namespace: "infra", Name: "edge"})
	for _, refs := range []string{"[]", "[{name: other}]", "[{name: edge}]", "[{name: edge, namespace: infra, kind: Service, group: ''}]"} {
		if got := keep(gatewayAPIObject(t, "a", "route", 1, `{parentRefs: `+refs+`}`)); got != nil {
			t.Errorf("%s: kept %+v", refs, got)
		}
	}
	f := newGatewayFixture(t)
	f.synced()
	for len(f.woken) > 0 {
		<-f.woken
	}
	other := gatewayAPIObject(t, "a", "route", 1, `{parentRefs: [{name: other}]}`)
	f.must(f.httpRoutes.watched[""].store.Add(other))
	if len(f.woken) > 0 {
		t.Error("a route of another Gateway wakes")
	}
	f.must(f.httpRoutes.watched[""].store.Update(routeTo(t, "a", "route", 2)))
	if len(f.woken) == 0 {
		t.Error("a route that becomes one of the Gateway does not wake")
	}
}

func TestAGrantWithAnUnknownFieldPermitsNothing(t *testing.T) {
	known := keepGrant(gatewayAPIObject(t, "a", "grant", 1, `{from: [{group: g, kind: K, namespace: shop}], to: [{group: "", kind: Service}]}`))
	unknown := keepGrant(gatewayAPIObject(t, "a", "grant", 2, `{from: [{group: g, kind: K, namespace: shop, serviceAccount: s}], to: [{group: "", kind: Service}]}`))
	if len(known.of.Spec.From) != 1 || known.wrong != "" || len(unknown.of.Spec.From) != 0 || !strings.Contains(unknown.wrong, "from[0].serviceAccount") {
		t.Errorf("got %+v and %+v", known, unknown)
	}
}
