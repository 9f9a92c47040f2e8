//go:build apitest

package gateway_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// oldEnvironment replaces the environment of the package by one that has only old definitions of the Gateway API.
func oldEnvironment(t *testing.T) {
	t.Helper()
	before := env
	old, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	env = old
	t.Cleanup(func() {
		env = before
		if err := old.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := old.InstallOldGatewayAPI(t.Context(), "gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants"); err != nil {
		t.Fatal(err)
	}
}

// A grant counts whichever version of it the cluster has. Definitions that are newer take nothing away.
func TestAGrantOfAnOlderVersionIsHonoured(t *testing.T) {
	oldEnvironment(t)
	t.Run("old definitions", func(t *testing.T) {
		f := &fixture{T: t, namespace: env.Namespace(t), other: env.Namespace(t)}
		f.installRights()
		f.class = f.newClass()
		counter := &requests.Counter{}
		first := f.startOperator(counter.Watch)
		secret, g := f.certificate(f.other, "web"), f.gateway(secure(f.other, "web"))
		route := f.route("shop", "shop", func(r *gatewayv1.HTTPRoute) {
			r.Spec.Rules[0].BackendRefs[0].Namespace = ptr(gatewayv1.Namespace(f.other))
		})
		f.create(f.class, secret, service(f.other, "shop"), g, route)
		f.refers(g, route, false)
		grant := (*gatewayv1beta1.ReferenceGrant)(f.grant())
		f.create(grant)
		f.refers(g, route, true)
		f.getsCopy(g, secret, true)
		if made := f.asked(counter, func() { f.touch(g, route) }); made.Writes() != 0 {
			t.Errorf("another look without anything to do cost %v, want no write", made)
		}
		f.delete(grant)
		f.refers(g, route, false)
		f.getsCopy(g, secret, false)
		grant = (*gatewayv1beta1.ReferenceGrant)(f.grant())
		f.create(grant)
		f.refers(g, route, true)

		f.install()
		f.touch(g, route)
		f.refers(g, route, true)
		first.Stop(t)
		f.startOperator(nil)
		f.refers(g, route, true)
		f.getsCopy(g, secret, true)
		newer := f.grant()
		f.delete(newer)
		f.refers(g, route, false)
		f.getsCopy(g, secret, false)
	})
}

// refers waits until the listener and the route may refer to the other namespace, or may not.
func (f *fixture) refers(g *gatewayv1.Gateway, route *gatewayv1.HTTPRoute, want bool) {
	f.Helper()
	status, reason := metav1.ConditionFalse, string(gatewayv1.ListenerReasonRefNotPermitted)
	if want {
		status, reason = metav1.ConditionTrue, string(gatewayv1.ListenerReasonResolvedRefs)
	}
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, status, gatewayv1.ListenerConditionReason(reason))
	f.waitRoute(route, string(gatewayv1.RouteConditionResolvedRefs), status, reason)
}

// getsCopy waits until the pods get a copy of a certificate, or get none.
func (f *fixture) getsCopy(g *gatewayv1.Gateway, secret *corev1.Secret, want bool) {
	f.Helper()
	environment.Eventually(f, func() error {
		copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
		if err := f.get(copies); client.IgnoreNotFound(err) != nil {
			return err
		}
		if _, found := copied.Find(copies, client.ObjectKeyFromObject(secret)); found != want {
			return errors.New("the copy does not follow the grant")
		}
		return nil
	})
}
