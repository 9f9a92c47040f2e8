//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestAClassOfOursIsAccepted(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	foreign := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: f.other}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"}}
	f.create(foreign, f.class)
	accepted := func(status metav1.ConditionStatus, reason gatewayv1.GatewayClassConditionReason) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(f.class); err != nil {
				return err
			}
			return has(f.class.Status.Conditions, f.class.Generation, "Accepted", status, string(reason))
		})
	}
	accepted(metav1.ConditionTrue, gatewayv1.GatewayClassReasonAccepted)
	if n := len(f.class.Status.SupportedFeatures); n < 20 {
		t.Errorf("%d features", n)
	}
	if !slices.IsSortedFunc(f.class.Status.SupportedFeatures, func(a, b gatewayv1.SupportedFeature) int { return strings.Compare(string(a.Name), string(b.Name)) }) {
		t.Errorf("not sorted: %v", f.class.Status.SupportedFeatures)
	}
	update(f, f.class, func(c *gatewayv1.GatewayClass) {
		c.Spec.Description = ptr("changed")
		c.Spec.ParametersRef = &gatewayv1.ParametersReference{Group: "example.com", Kind: "Parameters", Name: "any"}
	})
	accepted(metav1.ConditionFalse, gatewayv1.GatewayClassReasonInvalidParameters)
	if err := f.get(foreign); err != nil {
		t.Fatal(err)
	}
	if len(foreign.Status.SupportedFeatures) > 0 || len(foreign.ManagedFields) > 1 {
		t.Errorf("the class of somebody else has the status %+v", foreign.Status)
	}
}

func TestAGatewayIsProgrammedWhenItsPodsSaySo(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway()
	f.create(f.class, g)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonAddressNotAssigned)
	f.running(g)
	for _, object := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{}} {
		if err := f.get(child(f, g, object)); err != nil {
			t.Error(err)
		}
	}
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonPending)
	f.waitListener(g, "web", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.serve(g, []document.ServedListener{web()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	f.waitListener(g, "web", gatewayv1.ListenerConditionProgrammed, metav1.ConditionTrue, gatewayv1.ListenerReasonProgrammed)
	if diff := cmp.Diff([]gatewayv1.GatewayStatusAddress{{Type: ptr(gatewayv1.IPAddressType), Value: "203.0.113.10"}}, g.Status.Addresses); diff != "" {
		t.Error(diff)
	}
	environment.Eventually(t, func() error {
		if diff := cmp.Diff([]string{desired.Name(g)}, f.subjects()); diff != "" {
			return errors.New(diff)
		}
		return nil
	})

	// What others say of the Gateway stays.
	updateStatus(f, g, func(g *gatewayv1.Gateway) {
		g.Status.Conditions = append(g.Status.Conditions, metav1.Condition{Type: "example.com/Theirs", Status: metav1.ConditionTrue, Reason: "Theirs", LastTransitionTime: metav1.Now()})
	})
	update(f, g, func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "web", Port: 8080, Protocol: gatewayv1.HTTPProtocolType})
		g.Spec.Listeners[1].Name = "alt"
	})
	f.waitListener(g, "alt", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.waitListener(g, "web", gatewayv1.ListenerConditionProgrammed, metav1.ConditionTrue, gatewayv1.ListenerReasonProgrammed)
	if err := has(g.Status.Conditions, 0, "example.com/Theirs", metav1.ConditionTrue, "Theirs"); err != nil {
		t.Error(err)
	}
	exposed := child(f, g, &corev1.Service{})
	if err := f.get(exposed); err != nil || len(exposed.Spec.Ports) != 2 {
		t.Errorf("the ports are %+v (%v)", exposed.Spec.Ports, err)
	}

	f.delete(g)
	environment.Eventually(t, func() error {
		if left := f.subjects(); len(left) > 0 {
			return fmt.Errorf("%v may still read", left)
		}
		return nil
	})
}

func TestListenersThatConflictAreSaidTo(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: "tls", Port: 80, Protocol: gatewayv1.HTTPSProtocolType,
			TLS: &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "web"}}},
		})
	})
	f.create(f.class, f.certificate(f.namespace, "web"), g)
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionFalse, gatewayv1.GatewayReasonListenersNotValid)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionFalse, gatewayv1.GatewayReasonInvalid)
	f.waitListener(g, "web", gatewayv1.ListenerConditionConflicted, metav1.ConditionTrue, gatewayv1.ListenerReasonProtocolConflict)
	if err := f.get(child(f, g, &appsv1.Deployment{})); err == nil {
		t.Error("there are pods for a Gateway of which nothing can be served")
	}
	update(f, g, func(g *gatewayv1.Gateway) { g.Spec.Listeners[1].Port = 443 })
	f.waitGateway(g, gatewayv1.GatewayConditionAccepted, metav1.ConditionTrue, gatewayv1.GatewayReasonAccepted)
	for _, l := range g.Status.Listeners {
		for _, c := range l.Conditions {
			if c.Type == string(gatewayv1.ListenerConditionConflicted) {
				t.Errorf("listener %q is still said to conflict", l.Name)
			}
		}
	}
}

// A certificate of another namespace is there for the pods as long as a grant permits it.
func TestACertificateIsCopiedAsLongAsItIsGranted(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	secret, grant := f.certificate(f.other, "web"), f.grant()
	g := f.gateway(secure(f.other, "web"))
	f.create(f.class, secret, g)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonRefNotPermitted)
	f.create(grant)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionTrue, gatewayv1.ListenerReasonResolvedRefs)
	name := client.ObjectKeyFromObject(secret)
	copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
	copied := func() {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := errors.Join(f.get(copies), f.get(secret)); err != nil {
				return err
			}
			got, found := copied.Find(copies, name)
			want := copied.Certificate{Certificate: secret.Data[corev1.TLSCertKey], PrivateKey: secret.Data[corev1.TLSPrivateKeyKey], Version: secret.ResourceVersion}
			if !found || !cmp.Equal(want, got) {
				return errors.New("the copy is another one")
			}
			return nil
		})
	}
	copied()
	f.running(g)
	served := func() document.ServedListener {
		return document.ServedListener{Name: "tls", Digest: document.ListenerDigest(443, true, "", []string{name.String() + "@" + secret.ResourceVersion})}
	}
	f.serve(g, []document.ServedListener{web(), served()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)

	// A renewed one is served when the pods say so.
	update(f, secret, func(s *corev1.Secret) { s.Data = f.pair() })
	copied()
	f.waitListener(g, "tls", gatewayv1.ListenerConditionProgrammed, metav1.ConditionFalse, gatewayv1.ListenerReasonPending)
	f.serve(g, []document.ServedListener{web(), served()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)

	update(f, copies, func(s *corev1.Secret) { clear(s.Data) })
	copied()

	f.delete(grant)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonRefNotPermitted)
	environment.Eventually(t, func() error {
		if err := f.get(copies); err != nil {
			return err
		}
		if len(copies.Data) > 0 {
			return errors.New("the copy is still there")
		}
		return nil
	})
}

func TestASecretThatIsNoCertificateIsSaidToBeNone(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	secret := f.certificate(f.namespace, "web")
	secret.Data[corev1.TLSPrivateKeyKey] = f.pair()[corev1.TLSPrivateKeyKey]
	g := f.gateway(secure(f.namespace, "web"))
	f.create(f.class, g)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonInvalidCertificateRef)
	f.create(secret)
	environment.Quiet(t, 300*time.Millisecond, func() string { _ = f.get(g); return g.ResourceVersion })
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonInvalidCertificateRef)
	update(f, secret, func(s *corev1.Secret) { s.Data = f.pair() })
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionTrue, gatewayv1.ListenerReasonResolvedRefs)
	role := child(f, g, &rbacv1.Role{})
	environment.Eventually(t, func() error {
		if err := f.get(role); err != nil {
			return err
		}
		if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, []string{"web", desired.CopiesName(g)}) {
			return fmt.Errorf("the rules are %+v", role.Rules)
		}
		return nil
	})
}

// Each controller has its entries in the status of a route. Those of others stay as they are, and in their order.
func TestEntriesOfOthersAreNotTouched(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.gateway(), f.route("shop", "shop")
	f.create(route)
	theirs := func(name string) gatewayv1.RouteParentStatus {
		return gatewayv1.RouteParentStatus{
			ParentRef: gatewayv1.ParentReference{Group: ptr(gatewayv1.Group(gatewayv1.GroupName)), Kind: ptr(gatewayv1.Kind("Gateway")), Name: gatewayv1.ObjectName(name)}, ControllerName: "example.com/other",
			Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now().Rfc3339Copy()}},
		}
	}
	before := []gatewayv1.RouteParentStatus{theirs("z"), theirs("edge"), theirs("a")}
	updateStatus(f, route, func(r *gatewayv1.HTTPRoute) { r.Status.Parents = before })
	f.create(f.class, g, service(f.namespace, "shop"))
	f.waitRoute(route, "Accepted", metav1.ConditionTrue, "Accepted")
	f.waitRoute(route, "ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonNoReplica)
	f.running(g)
	f.serve(g, []document.ServedListener{web()})
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonReplicaBehind)
	f.serve(g, []document.ServedListener{web()}, route)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	foreign := func() []gatewayv1.RouteParentStatus {
		var left []gatewayv1.RouteParentStatus
		for _, p := range route.Status.Parents {
			if p.ControllerName != gateway.Controller {
				left = append(left, p)
			}
		}
		return left
	}
	gone := func() {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get(route); err != nil {
				return err
			}
			if _, err := entry(route); err == nil {
				return errors.New("our entry is still there")
			}
			return nil
		})
		if diff := cmp.Diff(before, foreign()); diff != "" {
			t.Errorf("entries of others have changed (-want +got):\n%s", diff)
		}
	}
	update(f, route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "another" })
	gone()
	update(f, route, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "edge" })
	f.waitRoute(route, "Accepted", metav1.ConditionTrue, "Accepted")
	f.delete(g)
	gone()
}

func TestAGrantThatIsTakenAwayIsSeenAtTheRoute(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	grant := f.grant()
	route := f.route("shop", "shop", func(r *gatewayv1.HTTPRoute) {
		r.Spec.Rules[0].BackendRefs[0].Namespace = ptr(gatewayv1.Namespace(f.other))
	})
	f.create(f.class, f.gateway(), grant, route)
	f.waitRoute(route, "ResolvedRefs", metav1.ConditionFalse, "BackendNotFound")
	f.create(service(f.other, "shop"))
	f.waitRoute(route, "ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")
	f.delete(grant)
	f.waitRoute(route, "ResolvedRefs", metav1.ConditionFalse, "RefNotPermitted")
}

// What serves is not taken away because its class was deleted.
func TestAClassThatIsDeletedInUseTakesNothingAway(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.gateway(), f.route("shop", "shop")
	f.create(f.class, g, service(f.namespace, "shop"), route)
	f.running(g)
	f.serve(g, []document.ServedListener{web()})
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	f.delete(f.class)
	// It is still looked after.
	f.serve(g, []document.ServedListener{web()}, route)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	if diff := cmp.Diff([]string{desired.Name(g)}, f.subjects()); diff != "" {
		t.Error(diff)
	}
}

func TestANamespaceMattersByItsLabels(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{
			From: ptr(gatewayv1.NamespacesFromSelector), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
		}}
	})
	route := f.route("shop", "shop", func(r *gatewayv1.HTTPRoute) {
		r.Namespace = f.other
		r.Spec.ParentRefs[0].Namespace = ptr(gatewayv1.Namespace(f.namespace))
	})
	f.create(f.class, g, route)
	f.waitRoute(route, "Accepted", metav1.ConditionFalse, "NotAllowedByListeners")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.other}}
	update(f, namespace, func(n *corev1.Namespace) { n.Labels["team"] = "shop" })
	f.waitRoute(route, "Accepted", metav1.ConditionTrue, "Accepted")
}

// The pods have nothing to do with it: a conflict keeps the listener from being served.
func TestARouteOfListenersInConflictSaysSo(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route := f.gateway(func(g *gatewayv1.Gateway) {
		other := g.Spec.Listeners[0]
		other.Name, other.Protocol, other.TLS = "tls", gatewayv1.HTTPSProtocolType, &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "cert"}}}
		other.Hostname = ptr(gatewayv1.Hostname("example.com"))
		g.Spec.Listeners = append(g.Spec.Listeners, other)
	}), f.route("shop", "app")
	f.create(f.class, f.certificate(f.namespace, "cert"), g, service(f.namespace, "app"), route)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonListenerInvalid)
	reported, err := entry(route)
	if err != nil {
		t.Fatal(err)
	}
	const want = `no listener that the route is attached to can be served: listener "web": port: listener "tls" speaks HTTPS on port 80, so HTTP cannot be spoken there`
	if got := meta.FindStatusCondition(reported.Conditions, gateway.ConditionLive).Message; got != want {
		t.Errorf("Live says %q, want %q", got, want)
	}
}
