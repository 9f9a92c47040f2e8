//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const contested = "api.example.com"

// asking is an APIGateway that asks for a host; empty: for another one of its own.
func (f *fixture) asking(name, host string) *slipwayv1alpha1.APIGateway {
	return f.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Name = name
		g.Spec.Routes = []slipwayv1alpha1.Route{route(f.ownHost(name), "/", "a")}
		if host != "" {
			g.Spec.Routes = append(g.Spec.Routes, route(host, "/", "a"))
		}
	})
}

func (f *fixture) ownHost(name string) string { return name + "." + f.namespace + ".example.com" }

// exposes reports whether the Ingress of a gateway has a host.
func (f *fixture) exposes(name, host string) bool {
	f.Helper()
	ingress := &networkingv1.Ingress{}
	if err := f.get(name+"-ingress", ingress); client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	return slices.ContainsFunc(ingress.Spec.Rules, func(rule networkingv1.IngressRule) bool { return rule.Host == host })
}

// has waits until a gateway has a host, and says so.
func (f *fixture) has(name, host string) {
	f.Helper()
	f.waitNamed(name, func(g *slipwayv1alpha1.APIGateway) error {
		if !f.exposes(name, host) {
			return fmt.Errorf("the Ingress of %q does not have %q", name, host)
		}
		return has(g, slipwayv1alpha1.ConditionAccepted, metav1.ConditionTrue, "")
	})
}

// lacks waits until a gateway says that its host belongs to another one. Its Ingress has its own host, and not this one.
func (f *fixture) lacks(name, host string, owner client.ObjectKey) {
	f.Helper()
	want := fmt.Sprintf("host: %q belongs to APIGateway %q, which is exposed at the same place and had it first", host, owner)
	f.waitNamed(name, func(g *slipwayv1alpha1.APIGateway) error {
		if f.exposes(name, host) || !f.exposes(name, f.ownHost(name)) {
			return fmt.Errorf("the Ingress of %q has %q, or not its own host", name, host)
		}
		if list := g.Status.Routes.NotLive; !slices.ContainsFunc(list, func(r slipwayv1alpha1.RouteNotLive) bool {
			return r.Reason == slipwayv1alpha1.ReasonHostConflict && r.Message == want
		}) {
			return fmt.Errorf("routes that are not live: %+v, want one with %q", list, want)
		}
		return has(g, slipwayv1alpha1.ConditionAccepted, metav1.ConditionFalse, slipwayv1alpha1.ReasonHostConflict)
	})
}

// ask has a gateway ask for a host beside its own, or for no other.
func (f *fixture) ask(name, host string) {
	f.Helper()
	update(f, &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Routes = f.asking(name, host).Spec.Routes
	})
}

// end deletes a gateway, and what exposes it: there is no garbage collector here.
func (f *fixture) end(name string) {
	f.Helper()
	f.delete(&slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}})
	f.delete(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name + "-ingress"}})
}

// A host belongs to who had it first, however old others are that ask for it later, by an edit and in whatever namespace. It
// stays so when the operator starts again. Who gives it up gives it to who waits.
func TestAHostBelongsToWhoHadItFirst(t *testing.T) {
	f := newFixture(t)
	there := &fixture{T: t, namespace: env.Namespace(t), cluster: f.cluster}
	first := f.startOperator(nil, there.namespace)
	there.create(there.asking("elder", ""))
	there.has("elder", there.ownHost("elder"))
	f.create(f.asking("younger", contested))
	f.has("younger", contested)
	younger := client.ObjectKey{Namespace: f.namespace, Name: "younger"}

	there.ask("elder", contested)
	there.lacks("elder", contested, younger)
	f.has("younger", contested)

	first.Stop(t)
	counted := f.records()
	second := f.startOperator(nil, there.namespace)
	f.ask("younger", contested)
	there.lacks("elder", contested, younger)
	f.has("younger", contested)
	if now := f.records(); !slices.Equal(now, counted) {
		t.Errorf("the records were\n%v\nand are\n%v", counted, now)
	}

	// What it gives up goes to who waits, and does not come back.
	f.ask("younger", "")
	there.has("elder", contested)
	f.ask("younger", contested)
	f.lacks("younger", contested, client.ObjectKey{Namespace: there.namespace, Name: "elder"})

	// It is gone while nobody looks. Another one of its name does not get what it had.
	second.Stop(t)
	there.end("elder")
	there.create(there.asking("elder", contested))
	f.startOperator(nil, there.namespace)
	f.has("younger", contested)
	there.lacks("elder", contested, younger)
}

// An operator that works in fewer namespaces than before does not see who has a host elsewhere. It goes on being theirs as long as
// their namespace exists.
func TestAHostOfANamespaceThatIsLeft(t *testing.T) {
	f := newFixture(t)
	there := &fixture{T: t, namespace: env.Namespace(t), cluster: f.cluster}
	first := f.startOperator(nil, there.namespace)
	const gone = "left.example.com"
	edge := there.asking("edge", contested)
	edge.Spec.Routes = append(edge.Spec.Routes, route(gone, "/", "a"))
	there.create(edge)
	there.has("edge", gone)
	first.Stop(t)

	// There is no controller here that deletes namespaces, so that one that does not exist has the host.
	list := &coordinationv1.LeaseList{}
	if err := env.Client.List(t.Context(), list, client.InNamespace("operator-of-"+f.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		lease := &list.Items[i]
		if holders := lease.Annotations["slipway.dev/holders"]; lease.Annotations["slipway.dev/host"] == gone {
			update(f, lease, func(l *coordinationv1.Lease) {
				l.Annotations["slipway.dev/holders"] = strings.ReplaceAll(holders, there.namespace, "gone-"+there.namespace)
			})
		}
	}
	f.startOperator(nil)
	next := f.asking("next", contested)
	next.Spec.Routes = append(next.Spec.Routes, route(gone, "/", "a"))
	f.create(next)
	f.lacks("next", contested, client.ObjectKey{Namespace: there.namespace, Name: "edge"})
	if !f.exposes("next", gone) {
		t.Error("the host of a namespace that does not exist is still withheld")
	}
}

// records are the records of the operator of the test, with their versions.
func (f *fixture) records() []string {
	f.Helper()
	list := &coordinationv1.LeaseList{}
	if err := env.Client.List(f.Context(), list, client.InNamespace("operator-of-"+f.namespace)); err != nil {
		f.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		all = append(all, fmt.Sprintf("%s %v %s", list.Items[i].Name, hosts.Holders(&list.Items[i]), list.Items[i].ResourceVersion))
	}
	return all
}

// A host is not given on before the Ingress of who had it is gone: for a moment both would be served.
func TestAHostIsGivenOnWhenNothingExposesItAnyMore(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.create(f.asking("first", contested))
	f.has("first", contested)
	f.create(f.asking("second", contested))
	first := client.ObjectKey{Namespace: f.namespace, Name: "first"}
	f.lacks("second", contested, first)

	held := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "first-ingress"}}
	update(f, held, func(i *networkingv1.Ingress) { i.Finalizers = []string{"example.com/load-balancer"} })
	f.delete(&slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "first"}})
	f.delete(held)
	f.ask("second", contested)
	f.lacks("second", contested, first)
	update(f, held, func(i *networkingv1.Ingress) { i.Finalizers = nil })
	f.has("second", contested)
}

// An installation that has no records takes what there is, by age. It moves nothing that is served: what does not name its
// class goes on beside one that does. From then on they are the same place.
func TestTheFirstRecordsAreByAge(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"b", "c"} {
		f.create(f.asking(name, contested))
	}
	f.create(f.asking("d", contested))
	update(f, &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "d"}}, func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Expose = &slipwayv1alpha1.Expose{IngressClassName: ptr("internal")}
	})
	f.startOperator(nil)
	b := client.ObjectKey{Namespace: f.namespace, Name: "b"}
	f.has("b", contested)
	f.has("d", contested)
	f.lacks("c", contested, b)

	late := f.asking("e", contested)
	late.Spec.Expose = &slipwayv1alpha1.Expose{IngressClassName: ptr("public")}
	f.create(late)
	f.lacks("e", contested, b)
}

// A certificate for a host of another gateway is not beside the Ingress: some controllers serve it for that host.
func TestACertificateOfAnotherOnesHostIsWithheld(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.create(f.asking("first", contested))
	f.has("first", contested)
	thief := f.asking("second", "")
	thief.Spec.TLS = []slipwayv1alpha1.GatewayTLS{
		{SecretRef: slipwayv1alpha1.LocalReference{Name: "mine"}, Hosts: []slipwayv1alpha1.HostName{contested, slipwayv1alpha1.HostName(f.ownHost("second"))}},
		{SecretRef: slipwayv1alpha1.LocalReference{Name: "theirs"}, Hosts: []slipwayv1alpha1.HostName{contested}},
	}
	f.create(thief)
	f.has("second", f.ownHost("second"))
	ingress := &networkingv1.Ingress{}
	if err := f.get("second-ingress", ingress); err != nil {
		t.Fatal(err)
	}
	if tls := ingress.Spec.TLS; len(tls) != 1 || !slices.Equal(tls[0].Hosts, []string{f.ownHost("second")}) {
		t.Errorf("the certificates are for %+v", tls)
	}
	// It gets it when it is free.
	f.end("first")
	environment.Eventually(t, func() error {
		if err := f.get("second-ingress", ingress); err != nil {
			return err
		}
		if len(ingress.Spec.TLS) != 2 {
			return fmt.Errorf("the certificates are for %+v", ingress.Spec.TLS)
		}
		return nil
	})
}

// HTTPRoutes are made for the Gateways that the operator was told of. Those that there are serve on, and status says why
// nothing changes.
func TestHTTPRoutesAreMadeForPermittedGateways(t *testing.T) {
	f := newFixture(t)
	installGatewayAPI(t)
	start := func(permitted ...string) *environment.Operator {
		return env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
			options.Namespaces, options.GatewayAdminPort = []string{f.namespace}, f.cluster.Gateways.Port
			options.HTTPRouteGateways = permitted
		})
	}
	edge := f.gateway(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}, Namespace: "infra"}}
	})
	f.create(edge)
	refused := func() {
		t.Helper()
		got := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonExposeNotPermitted)
		want := `spec.expose.gateway: the operator may not make HTTPRoutes for Gateway "infra/shared"; its option --httproute-gateways, value gateway.httpRouteGateways of the chart, permits it`
		if c := meta.FindStatusCondition(got.Status.Conditions, slipwayv1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || c.Message != want {
			t.Errorf("Ready is %+v, want the message %q", c, want)
		}
	}
	first := start("infra/other", "f/*")
	refused()
	if hostnames, err := f.hostnames(); !apierrors.IsNotFound(err) {
		t.Errorf("there is an HTTPRoute with %v (%v)", hostnames, err)
	}
	if held := f.records(); len(held) != 1 {
		t.Errorf("what is not exposed has hosts: %v", held)
	}
	first.Stop(t)
	for _, pattern := range []string{"infra/shared", "infra/*", "*"} {
		permitting := start(pattern)
		f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, "")
		environment.Eventually(t, func() error {
			hostnames, err := f.hostnames()
			if err == nil && !slices.Equal(hostnames, []string{"api.example.com"}) {
				return fmt.Errorf("the hosts are %v", hostnames)
			}
			return err
		})
		permitting.Stop(t)
	}
	// Who upgrades and permits nothing loses no route.
	start()
	recorded := strings.Join(f.records(), " ")
	update(f, edge, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Routes[0].Host = "more.example.com" })
	refused()
	if hostnames, err := f.hostnames(); err != nil || !slices.Equal(hostnames, []string{"api.example.com"}) {
		t.Errorf("the HTTPRoute has %v (%v)", hostnames, err)
	}
	if held := strings.Join(f.records(), " "); held != recorded {
		t.Errorf("what may not be exposed has taken a host: %s, before %s", held, recorded)
	}
	update(f, edge, func(g *slipwayv1alpha1.APIGateway) { g.Spec.Expose = nil })
	environment.Eventually(t, func() error {
		if _, err := f.hostnames(); !apierrors.IsNotFound(err) {
			return errors.Join(err, errors.New("there is an HTTPRoute"))
		}
		return nil
	})
}

// hostnames are those of the HTTPRoute of the gateway called edge.
func (f *fixture) hostnames() ([]string, error) {
	httpRoute := &gatewayv1.HTTPRoute{}
	if err := f.get("edge", httpRoute); err != nil {
		return nil, err
	}
	var names []string
	for _, name := range httpRoute.Spec.Hostnames {
		names = append(names, string(name))
	}
	return names, nil
}
