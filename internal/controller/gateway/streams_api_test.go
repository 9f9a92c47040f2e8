//go:build apitest

package gateway_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// waitParent waits for a condition in our entry of a route, whose entries are given.
func (f *fixture) waitParent(route client.Object, entries *[]gatewayv1.RouteParentStatus, conditionType string, status metav1.ConditionStatus, reason string) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := f.get(route); err != nil {
			return err
		}
		for _, entry := range *entries {
			if entry.ControllerName == gateway.Controller {
				return has(entry.Conditions, route.GetGeneration(), conditionType, status, reason)
			}
		}
		return errors.New("no entry of ours")
	})
}

func TestListenersForTLSAndTCPAndUDP(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = []gatewayv1.Listener{
			{Name: "through", Port: 443, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{Mode: ptr(gatewayv1.TLSModePassthrough)}},
			{Name: "tcp", Port: 53, Protocol: gatewayv1.TCPProtocolType},
			{Name: "udp", Port: 53, Protocol: gatewayv1.UDPProtocolType},
		}
	})
	app := service(f.namespace, "app")
	app.Spec.Ports = []corev1.ServicePort{{Name: "tcp", Port: 8080}, {Name: "udp", Port: 8080, Protocol: corev1.ProtocolUDP}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: f.namespace} }
	parents := gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}}
	to := []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: ptr(gatewayv1.PortNumber(8080))}}}
	through := &gatewayv1.TLSRoute{ObjectMeta: meta("through"), Spec: gatewayv1.TLSRouteSpec{CommonRouteSpec: parents, Hostnames: []gatewayv1.Hostname{"a.example.com"}, Rules: []gatewayv1.TLSRouteRule{{BackendRefs: to}}}}
	first := &gatewayv1.TCPRoute{ObjectMeta: meta("a-first"), Spec: gatewayv1.TCPRouteSpec{CommonRouteSpec: parents, Rules: []gatewayv1.TCPRouteRule{{BackendRefs: to}}}}
	second := first.DeepCopy()
	second.Name = "b-second"
	udp := &gatewayv1.UDPRoute{ObjectMeta: meta("udp"), Spec: gatewayv1.UDPRouteSpec{CommonRouteSpec: parents, Rules: []gatewayv1.UDPRouteRule{{BackendRefs: to}}}}
	f.create(f.class, app, g, through, first, second, udp)
	f.running(g)
	environment.Eventually(t, func() error {
		exposed := child(f, g, &corev1.Service{})
		if err := f.get(exposed); err != nil {
			return err
		}
		var ports []string
		for _, p := range exposed.Spec.Ports {
			ports = append(ports, fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
		}
		if diff := cmp.Diff([]string{"tcp-53 53/TCP", "udp-53 53/UDP", "tls-443 443/TCP"}, ports); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	f.serve(g, []document.ServedListener{
		{Name: "through", Digest: document.ListenerDigest(443, true, "", []string{"transport: TLS"})},
		{Name: "tcp", Digest: document.ListenerDigest(53, false, "", []string{"transport: TCP"})},
		{Name: "udp", Digest: document.ListenerDigest(53, false, "", []string{"transport: UDP"})},
	}, through, first, second, udp)
	f.waitGateway(g, gatewayv1.GatewayConditionProgrammed, metav1.ConditionTrue, gatewayv1.GatewayReasonProgrammed)
	f.waitParent(through, &through.Status.Parents, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.waitParent(first, &first.Status.Parents, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.waitParent(second, &second.Status.Parents, "Accepted", metav1.ConditionTrue, "Accepted")
	f.waitParent(second, &second.Status.Parents, gateway.ConditionLive, metav1.ConditionFalse, gateway.ReasonOlderRouteFirst)
	f.waitParent(udp, &udp.Status.Parents, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	environment.Eventually(t, func() error {
		if err := f.get(g); err != nil {
			return err
		}
		var said []string
		for _, l := range g.Status.Listeners {
			for _, kind := range l.SupportedKinds {
				said = append(said, fmt.Sprintf("%s: %d of %s", l.Name, l.AttachedRoutes, kind.Kind))
			}
		}
		if diff := cmp.Diff([]string{"through: 1 of TLSRoute", "tcp: 2 of TCPRoute", "udp: 1 of UDPRoute"}, said); diff != "" {
			return errors.New(diff)
		}
		return nil
	})

	// The next one takes over, and what was said of a route goes with its Gateway.
	f.delete(first)
	f.waitParent(second, &second.Status.Parents, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	f.delete(app)
	f.waitParent(udp, &udp.Status.Parents, "ResolvedRefs", metav1.ConditionFalse, "BackendNotFound")
	f.delete(g)
	for _, route := range []struct {
		object  client.Object
		entries *[]gatewayv1.RouteParentStatus
	}{{through, &through.Status.Parents}, {second, &second.Status.Parents}, {udp, &udp.Status.Parents}} {
		environment.Eventually(t, func() error {
			if err := f.get(route.object); err != nil {
				return err
			}
			if len(*route.entries) > 0 {
				return fmt.Errorf("%T has entries", route.object)
			}
			return nil
		})
	}
}
