//go:build apitest

package gateway_test

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/testing/authority"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// trusting has clients of a Gateway show certificates of the authorities in a ConfigMap.
func trusting(namespace, name string) func(*gatewayv1.Gateway) {
	return func(g *gatewayv1.Gateway) {
		in := gatewayv1.Namespace(namespace)
		g.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{
			Validation: &gatewayv1.FrontendTLSValidation{CACertificateRefs: []gatewayv1.ObjectReference{{Kind: "ConfigMap", Namespace: &in, Name: gatewayv1.ObjectName(name)}}},
		}}}
	}
}

// Who makes a Gateway or a route has nothing read in another namespace that no grant permits.
func TestConfigMapsOfOtherNamespacesAreReadWithAGrantOnly(t *testing.T) {
	f := newFixture(t)
	seen := &answers{of: map[string]int{}}
	f.startOperator(func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorded{next, seen} })
	})
	read := func(name string) bool {
		seen.mutex.Lock()
		defer seen.mutex.Unlock()
		_, asked := seen.of["GET /api/v1/namespaces/"+f.other+"/configmaps/"+name]
		return asked
	}
	ca := authority.New(t, "ca").PEM()
	secret := f.certificate(f.namespace, "web")
	g := f.gateway(secure(f.namespace, "web"), trusting(f.other, "clients"))
	policy := f.policy("db", "db", "backend")
	policy.Namespace = f.other
	route := f.route("shop", "db", func(r *gatewayv1.HTTPRoute) {
		r.Spec.Rules[0].BackendRefs[0].Namespace = ptr(gatewayv1.Namespace(f.other))
	})
	f.create(bundle(f.other, "clients", ca), bundle(f.other, "backend", ca), service(f.other, "db"), policy, secret, f.class, g, route)
	f.waitRoute(route, string(gatewayv1.RouteConditionResolvedRefs), metav1.ConditionFalse, string(gatewayv1.RouteReasonRefNotPermitted))
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionFalse, gatewayv1.ListenerReasonRefNotPermitted)
	if read("clients") || read("backend") {
		t.Errorf("without a grant the ConfigMap of the Gateway was read: %v, that of the policy: %v", read("clients"), read("backend"))
	}
	if err := f.get(policy); err != nil || len(policy.Status.Ancestors) > 0 {
		t.Errorf("the policy has entries for a Gateway that may not use its Service (%v): %+v", err, policy.Status)
	}

	grant := f.grant()
	grant.Spec.To = append(grant.Spec.To, gatewayv1.ReferenceGrantTo{Kind: "ConfigMap"})
	f.create(grant)
	f.waitRoute(route, string(gatewayv1.RouteConditionResolvedRefs), metav1.ConditionTrue, string(gatewayv1.RouteReasonResolvedRefs))
	f.waitPolicy(policy, gatewayv1.PolicyConditionAccepted, metav1.ConditionTrue, gatewayv1.PolicyReasonAccepted)
	f.waitListener(g, "tls", gatewayv1.ListenerConditionResolvedRefs, metav1.ConditionTrue, gatewayv1.ListenerReasonResolvedRefs)
	if !read("clients") || !read("backend") {
		t.Error("with a grant nothing was read, so the test sees nothing")
	}

	f.delete(grant)
	environment.Eventually(t, func() error {
		if err := f.get(policy); err != nil {
			return err
		}
		if len(policy.Status.Ancestors) > 0 {
			return errors.New("the policy has an entry of ours though the grant has gone")
		}
		return nil
	})
}
