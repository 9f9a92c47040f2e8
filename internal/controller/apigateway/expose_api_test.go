//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// addressed waits until status has these addresses.
func (f *fixture) addressed(want ...string) {
	f.Helper()
	f.wait(func(g *slipwayv1alpha1.APIGateway) error {
		if !slices.Equal(want, g.Status.Addresses) || (len(want) > 0 && g.Status.Summary.Address != want[0]) {
			return fmt.Errorf("addresses %v and %q, want %v", g.Status.Addresses, g.Status.Summary.Address, want)
		}
		return nil
	})
}

func TestStatusSaysWhereTheGatewayIsReached(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.gateway()
	f.create(gateway)
	ingress := &networkingv1.Ingress{}
	environment.Eventually(t, func() error { return f.get("edge-ingress", ingress) })
	ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.10"}, {Hostname: "lb.example.com"}, {IP: "203.0.113.10"}}
	if err := env.Client.Status().Update(t.Context(), ingress); err != nil {
		t.Fatal(err)
	}
	f.addressed("203.0.113.10", "lb.example.com")

	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeLoadBalancer}
	})
	f.addressed()
	service := &corev1.Service{}
	if err := f.get("edge", service); err != nil {
		t.Fatal(err)
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.20"}}
	if err := env.Client.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	f.addressed("203.0.113.20")
}

// A cluster need not have the Gateway API, and may get it later.
func TestAnHTTPRouteIsMadeWhereTheClusterKnowsThem(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}}}
	})
	f.create(f.service("user-service"), f.service("product-service"), gateway)
	f.startPods()
	// What exposes the gateway does not stop its pods.
	f.wait(func(g *slipwayv1alpha1.APIGateway) error {
		if g.Status.Routes.Live != 2 {
			return fmt.Errorf("%d routes are live", g.Status.Routes.Live)
		}
		return has(g, slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonKindNotFound)
	})

	installGatewayAPI(t)
	f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonParentNotFound)
	f.standbyWatchesTheGatewayAPI()
	httpRoute := &gatewayv1.HTTPRoute{}
	if err := f.get("edge", httpRoute); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]gatewayv1.Hostname{"api.example.com"}, httpRoute.Spec.Hostnames); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}

	parent := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: f.namespace},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "any", Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: "HTTP"}}},
	}
	f.create(parent)
	parent.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Type: ptr(gatewayv1.IPAddressType), Value: "203.0.113.30"}}
	if err := env.Client.Status().Update(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.addressed()

	// What its controller says of the HTTPRoute counts, as far as it has seen it.
	parentSays := func(accepted metav1.ConditionStatus, reason gatewayv1.RouteConditionReason, generation int64) {
		t.Helper()
		if err := f.get("edge", httpRoute); err != nil {
			t.Fatal(err)
		}
		httpRoute.Status.Parents = []gatewayv1.RouteParentStatus{{
			ParentRef:      httpRoute.Spec.ParentRefs[0],
			ControllerName: "example.com/gateway",
			Conditions: []metav1.Condition{{
				Type: string(gatewayv1.RouteConditionAccepted), Status: accepted, Reason: string(reason), Message: "because",
				ObservedGeneration: generation, LastTransitionTime: metav1.Now(),
			}},
		}}
		if err := env.Client.Status().Update(t.Context(), httpRoute); err != nil {
			t.Fatal(err)
		}
	}
	parentSays(metav1.ConditionFalse, gatewayv1.RouteReasonNotAllowedByListeners, httpRoute.Generation)
	f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonParentRefused)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonParentRefused)
	parentSays(metav1.ConditionFalse, gatewayv1.RouteReasonNotAllowedByListeners, httpRoute.Generation-1)
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.addressed()
	parentSays(metav1.ConditionTrue, gatewayv1.RouteReasonAccepted, httpRoute.Generation)
	f.addressed("203.0.113.30")

	// Drift and deletion as of any child, by another operator too.
	update(f, httpRoute, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = []gatewayv1.Hostname{"other.example.com"} })
	environment.Eventually(t, func() error {
		if err := f.get("edge", httpRoute); err != nil {
			return err
		}
		if !slices.Equal(httpRoute.Spec.Hostnames, []gatewayv1.Hostname{"api.example.com"}) {
			return fmt.Errorf("the hosts are %v", httpRoute.Spec.Hostnames)
		}
		return nil
	})
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Expose = nil })
	environment.Eventually(t, func() error { return f.gone("edge", httpRoute) })
}

// One host that an Ingress refuses, or one more than an HTTPRoute takes, must not keep the
// others from being exposed.
func TestEveryHostIsExposedThatCanBe(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	gateway := f.running()
	host := func(i int) slipwayv1alpha1.HostName {
		return slipwayv1alpha1.HostName(fmt.Sprintf("h%02d.example.com", i))
	}
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Routes = append(g.Spec.Routes, route("10.0.0.1", "/", "user-service"), route(string(host(0)), "/", "user-service"))
	})
	refused := f.waitFor(slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonHostNotExposed)
	notLive(t, refused, slipwayv1alpha1.RouteNotLive{
		Name: "10.0.0.1/", Reason: slipwayv1alpha1.ReasonHostNotExposed, Replicas: "2/2",
		Message: `host: "10.0.0.1" is an address, and spec.expose.type Ingress takes names only: name a host or choose another type`,
	})
	ingress := &networkingv1.Ingress{}
	if err := f.get("edge-ingress", ingress); err != nil || len(ingress.Spec.Rules) != 2 || ingress.Spec.Rules[1].Host != string(host(0)) {
		t.Errorf("the Ingress has %+v, want the new host too (%v)", ingress.Spec.Rules, err)
	}

	installGatewayAPI(t)
	f.create(&gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: f.namespace},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "any", Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: "HTTP"}}},
	})
	hosts := func(names ...slipwayv1alpha1.HostName) {
		t.Helper()
		update(f, gateway, func(g *slipwayv1alpha1.APIGateway) {
			g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}}}
			g.Spec.Routes = nil
			for _, name := range names {
				g.Spec.Routes = append(g.Spec.Routes, route(string(name), "/", "user-service"))
			}
		})
	}
	exposed := func(name string, want ...slipwayv1alpha1.HostName) {
		t.Helper()
		environment.Eventually(t, func() error {
			httpRoute := &gatewayv1.HTTPRoute{}
			if len(want) == 0 {
				return f.gone(name, httpRoute)
			}
			if err := f.get(name, httpRoute); err != nil {
				return err
			}
			var got []slipwayv1alpha1.HostName
			for _, host := range httpRoute.Spec.Hostnames {
				got = append(got, slipwayv1alpha1.HostName(host))
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("HTTPRoute %q has %v, want %v", name, got, want)
			}
			return nil
		})
	}
	second := desired.HTTPRouteName(gateway, 1)
	var names []slipwayv1alpha1.HostName
	for i := range 17 {
		names = append(names, host(i+1))
	}
	hosts(names...)
	exposed("edge", names[:16]...)
	exposed(second, names[16])
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.httpRoutesAreAsStated("edge", second)
	hosts(append(names, host(0))...)
	exposed(second, host(0), names[16])
	exposed("edge", names[:16]...)
	hosts(names[:16]...)
	exposed(second)
	hosts(append(names, "")...)
	exposed(second)
	f.formerHTTPRouteGoes(gateway)
	update(f, gateway, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Expose = nil })
	exposed("edge")
}

// formerHTTPRouteGoes makes one that has the name of another release, beside one of that
// name's kind that nobody controls. Only the first is the gateway's.
func (f *fixture) formerHTTPRouteGoes(gateway *slipwayv1alpha1.APIGateway) {
	f.Helper()
	made := func(name string, owners ...metav1.OwnerReference) {
		f.create(&gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: f.namespace, Labels: desired.Labels(gateway), OwnerReferences: owners,
		}})
	}
	made("edge-hosts-3")
	made("edge-hosts-2", *metav1.NewControllerRef(gateway, slipwayv1alpha1.SchemeGroupVersion.WithKind(desired.Kind)))
	environment.Eventually(f, func() error { return f.gone("edge-hosts-2", &gatewayv1.HTTPRoute{}) })
	if err := f.get("edge-hosts-3", &gatewayv1.HTTPRoute{}); err != nil {
		f.Errorf("an HTTPRoute that the gateway does not control is gone: %v", err)
	}
}

// httpRoutesAreAsStated looks at HTTPRoutes as an operator does that has just started: one that
// is as stated must not be written again, then and whenever the Gateway writes its status.
func (f *fixture) httpRoutesAreAsStated(names ...string) {
	f.Helper()
	gateway := &slipwayv1alpha1.APIGateway{}
	if err := f.get("edge", gateway); err != nil {
		f.Fatal(err)
	}
	routes, current := make([]*gatewayv1.HTTPRoute, len(names)), make([][]string, len(names))
	for place, name := range names {
		routes[place] = &gatewayv1.HTTPRoute{}
		if err := f.get(name, routes[place]); err != nil {
			f.Fatal(err)
		}
		for _, host := range routes[place].Spec.Hostnames {
			current[place] = append(current[place], string(host))
		}
	}
	applier := &apply.Applier{FieldManager: apigateway.FieldManager}
	for place, stated := range desired.HTTPRoutes(gateway, current, nil) {
		if drifted, err := applier.Drifted(stated, routes[place]); drifted || err != nil {
			f.Errorf("HTTPRoute %q: drifted: %v (%v): %+v", names[place], drifted, err, routes[place].Spec.Rules)
		}
	}
}

// standbyWatchesTheGatewayAPI starts an operator that somebody else's Lease keeps from
// leading. It has to fill its cache of HTTPRoutes all the same: a watch that is warmed up
// over a cache which does not run ends the operator after two minutes.
func (f *fixture) standbyWatchesTheGatewayAPI() {
	f.Helper()
	now := metav1.NowMicro()
	f.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: operator.LeaderElectionID, Namespace: f.namespace},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr("somebody"), LeaseDurationSeconds: ptr[int32](3600), AcquireTime: &now, RenewTime: &now,
		},
	})
	counter := &requests.Counter{}
	env.StartOperatorWith(f, func(config *rest.Config, options *environment.Options) {
		options.Namespaces = []string{f.namespace}
		options.LeaderElection, options.LeaderElectionNamespace = true, f.namespace
		counter.Watch(config)
	})
	environment.Eventually(f, func() error {
		for kind := range counter.Counts() {
			if kind.Verb == "watch" && kind.Resource == "httproutes" {
				return nil
			}
		}
		return errors.New("the standby does not watch HTTPRoutes")
	})
}

// installGatewayAPI installs two kinds of the Gateway API, from its Go module.
func installGatewayAPI(t *testing.T) {
	t.Helper()
	err := env.InstallModule(t.Context(), "sigs.k8s.io/gateway-api",
		"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml", "config/crd/standard/gateway.networking.k8s.io_gateways.yaml")
	if err != nil {
		t.Fatal(err)
	}
}
