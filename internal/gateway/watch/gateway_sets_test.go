package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/proxy"
)

// set puts a ListenerSet into its store.
func (f *gatewayFixture) set(namespace, name string, generation int64, spec string) {
	f.t.Helper()
	f.must(f.sets.watched[""].store.Update(gatewayAPIObject(f.t, namespace, name, generation, spec)))
}

// listeners are those that the gateway says it serves.
func (f *gatewayFixture) listeners() string {
	var names []string
	for _, l := range f.board.Current().Listeners {
		names = append(names, l.Name)
	}
	return strings.Join(names, " ")
}

// secretNames are the Secrets that are watched.
func (f *gatewayFixture) secretNames() string {
	var names []string
	for name := range f.secrets.watched {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

const (
	openGateway = `{gatewayClassName: slipway, allowedListeners: {namespaces: {from: All}}, listeners: [{name: http, port: 80, protocol: HTTP, hostname: own.example.com}]}`
	appSet      = `{parentRef: {name: edge, namespace: infra}, listeners: [{name: app, port: 8080, protocol: HTTP}, {name: more, port: 8081, protocol: HTTP}]}`
)

func TestListenerSetsOfOthersCostTheirName(t *testing.T) {
	keep := keepSet(types.NamespacedName{Namespace: "infra", Name: "edge"})
	for _, ref := range []string{"{name: other, namespace: infra}", "{name: edge}", "{name: edge, namespace: infra, kind: ListenerSet}", "{name: edge, namespace: infra, group: x}", "7"} {
		if got := keep(gatewayAPIObject(t, "a", "set", 1, `{parentRef: `+ref+`, listeners: [{name: a, port: 80, protocol: HTTP}]}`)); got != nil {
			t.Errorf("%s: kept %+v", ref, got)
		}
	}
	if got := keep(gatewayAPIObject(t, "a", "set", 1, appSet)); got == nil || len(got.of.Spec.Listeners) != 2 || got.wrong != "" {
		t.Errorf("of its own it keeps %+v", got)
	}
	if got := keep(gatewayAPIObject(t, "a", "set", 1, strings.Replace(appSet, "8080", "many", 1))); got == nil || len(got.of.Spec.Listeners) != 0 || got.wrong == "" {
		t.Errorf("of one of another form it keeps %+v", got)
	}
}

func TestTheListenersOfAllowedSetsAreServed(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced()
	f.set("a", "app", 1, appSet)
	f.look(t.Context())
	if got := f.listeners(); got != "http" {
		t.Errorf("with a set that is not allowed it serves %q", got)
	}
	f.gateway(2, openGateway)
	f.look(t.Context())
	if got := f.listeners(); got != "http a/app/app a/app/more" {
		t.Errorf("with a set that is allowed it serves %q", got)
	}
	if diff := cmp.Diff(map[Port]bool{{80, proxy.PortHTTP}: true, {8080, proxy.PortHTTP}: true, {8081, proxy.PortHTTP}: true}, f.applied[len(f.applied)-1].Ports); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
	f.set("a", "app", 2, strings.Replace(appSet, "name: more,", "name: more, limit: 3,", 1))
	f.look(t.Context())
	if got := f.listeners(); got != "http a/app/app" {
		t.Errorf("with an unknown field in a listener it serves %q", got)
	}
	f.set("a", "app", 3, strings.Replace(appSet, "{parentRef", "{quota: 3, parentRef", 1))
	f.look(t.Context())
	if got := f.listeners(); got != "http" {
		t.Errorf("with an unknown field in the set it serves %q", got)
	}
	f.set("a", "app", 4, strings.Replace(appSet, "8080", "many", 1))
	f.look(t.Context())
	if got := f.board.Current(); f.listeners() != "http" || len(got.Problems) != 1 || got.Problems[0].Field != "ListenerSet a/app" {
		t.Errorf("with a set of another form it says %+v", got)
	}
}

// A route that names a set matters as long as the set names the Gateway.
func TestARouteOfASet(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, openGateway)
	route := gatewayAPIObject(t, "a", "route", 1, `{parentRefs: [{kind: ListenerSet, name: app}], rules: [{backendRefs: [{name: app, port: 80}]}]}`)
	f.synced(route)
	f.look(t.Context())
	if f.watchedNamespaces() != "" || len(f.applied) != 1 {
		t.Fatalf("without the set: watches %q, applied %d", f.watchedNamespaces(), len(f.applied))
	}
	for len(f.woken) > 0 {
		<-f.woken
	}
	f.must(f.httpRoutes.watched[""].store.Update(gatewayAPIObject(t, "a", "route", 2, `{parentRefs: [{kind: ListenerSet, name: app}], rules: [{backendRefs: [{name: app, port: 80}]}]}`)))
	f.set("a", "app", 1, strings.Replace(appSet, "name: edge", "name: other", 1))
	if len(f.woken) > 0 {
		t.Error("a route of a set of another Gateway wakes, or the set")
	}
	f.set("a", "app", 2, appSet)
	if len(f.woken) == 0 {
		t.Error("a set that becomes one of the Gateway does not wake")
	}
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	if got := f.board.Current(); len(got.Routes) != 1 || len(got.Problems) != 0 {
		t.Errorf("with the set it says %+v", got)
	}
	for len(f.woken) > 0 {
		<-f.woken
	}
	f.must(f.httpRoutes.watched[""].store.Delete(route))
	if len(f.woken) == 0 {
		t.Error("a route of a set of the Gateway does not wake")
	}
	f.look(t.Context())
	if got := f.board.Current(); len(got.Routes) != 0 {
		t.Errorf("without the route it says %+v", got)
	}
}

// What a set names is looked at only where the set is allowed, and may use it.
func TestSecretsOfSets(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, strings.Replace(openGateway, "from: All", "from: Selector, selector: {matchLabels: {sets: ok}}", 1))
	f.synced()
	spec := `{parentRef: {name: edge, namespace: infra}, listeners: [{name: tls, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: admin, namespace: infra}, {name: own}]}}]}`
	f.set("a", "app", 1, spec)
	f.look(t.Context())
	if _, watched := f.namespaces.watched[""]; !watched || f.secretNames() != "" {
		t.Fatalf("namespaces are watched: %t, and the Secrets %q", watched, f.secretNames())
	}
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"sets": "ok"}}}
	f.must(f.namespaces.watched[""].store.Replace([]any{labelled}, ""))
	f.look(t.Context())
	if got := f.secretNames(); got != "edge-certificates" {
		t.Errorf("without a grant the Secrets %q are watched", got)
	}
	grant := gatewayAPIObject(t, "infra", "grant", 1, `{from: [{group: gateway.networking.k8s.io, kind: ListenerSet, namespace: a}], to: [{group: "", kind: Secret, name: admin}]}`)
	f.must(f.grants.watched[""].store.Update(grant))
	f.look(t.Context())
	if got := f.secretNames(); got != "admin edge-certificates" {
		t.Errorf("with a grant the Secrets %q are watched", got)
	}
	delete(labelled.Labels, "sets")
	f.must(f.namespaces.watched[""].store.Replace([]any{labelled.DeepCopy()}, ""))
	f.must(f.secrets.watched["admin"].store.Replace(nil, ""))
	f.must(f.secrets.watched["edge-certificates"].store.Replace(nil, ""))
	f.look(t.Context())
	f.look(t.Context())
	if got := f.secretNames(); got != "" {
		t.Errorf("of a set that is not allowed the Secrets %q are watched", got)
	}
}
