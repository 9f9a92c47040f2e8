//go:build apitest

package gateway_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// settings is a policy for the route shop.
func (f *fixture) settings(name string, settings slipwayv1alpha1.GatewayPolicySettings) *slipwayv1alpha1.GatewayPolicy {
	policy := attach(f.namespace, name, "HTTPRoute", "shop", "", "")
	policy.Spec.Defaults = &settings
	return policy
}

// holds waits until the Secret with the copies has so many bytes under a key, and returns them.
func (f *fixture) holds(g *gatewayv1.Gateway, key string, length int) (content []byte) {
	f.Helper()
	environment.Eventually(f, func() error {
		copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
		if err := f.get(copies); err != nil {
			return err
		}
		if content = copies.Data[key]; len(content) != length {
			return fmt.Errorf("%q has %d bytes, want %d", key, len(content), length)
		}
		return nil
	})
	return content
}

var (
	sessions    = slipwayv1alpha1.GatewayPolicySettings{SessionAffinity: &slipwayv1alpha1.SessionAffinity{Cookie: &slipwayv1alpha1.AffinityCookie{}}}
	sharedLimit = slipwayv1alpha1.GatewayPolicySettings{RateLimit: &slipwayv1alpha1.RateLimit{
		Requests: 10, Period: "1s", Per: slipwayv1alpha1.RateLimitPerRoute, Count: slipwayv1alpha1.RateLimitCountedByGateway,
	}}
)

// The pods have a secret in common as long as a rule has sessions, or a limit that all of them count together, and it stays the same.
func TestTheSecretsOfThePodsAreBesideTheCopies(t *testing.T) {
	for key, wants := range map[string]slipwayv1alpha1.GatewayPolicySettings{copied.SessionsKey: sessions, copied.ReplicasKey: sharedLimit} {
		t.Run(key, func(t *testing.T) {
			f := newFixture(t)
			f.startOperator(nil)
			g, route := f.gateway(), f.route("shop", "app")
			policy := f.settings("wants", *wants.DeepCopy())
			f.create(f.class, g, service(f.namespace, "app"), route, policy)
			first := f.holds(g, key, copied.SecretBytes)
			update(f, policy, func(p *slipwayv1alpha1.GatewayPolicy) { p.Spec.Defaults.MaxBodyBytes = ptr(int64(1000)) })
			f.waitPolicyOf(policy, slipwayv1alpha1.ConditionPolicyAccepted, "True", slipwayv1alpha1.ReasonPolicyAccepted)
			if again := f.holds(g, key, copied.SecretBytes); !bytes.Equal(first, again) {
				t.Error("it is another one")
			}
			copies := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: desired.CopiesName(g), Namespace: f.namespace}}
			update(f, copies, func(s *corev1.Secret) { delete(s.Data, key) })
			if again := f.holds(g, key, copied.SecretBytes); bytes.Equal(first, again) {
				t.Error("the one that was taken out is back")
			}
			f.delete(policy)
			f.holds(g, key, 0)
		})
	}
}

// What the pods do not share is reported where it was asked for, and the route that they serve is live.
func TestALimitThatPodsDoNotShareIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g, route, policy := f.gateway(), f.route("shop", "app"), f.settings("limit", *sharedLimit.DeepCopy())
	f.create(f.class, g, service(f.namespace, "app"), route, policy)
	f.running(g)
	says := func(problems ...document.Problem) {
		f.serve(g, []document.ServedListener{web()}, route)
		doc := f.board.Current()
		doc.Routes = append(doc.Routes, document.PolicyDigest(policy.UID, policy.Generation, nil))
		doc.Problems = problems
		f.board.Publish(doc)
	}
	const live = slipwayv1alpha1.ConditionPolicyLive
	says()
	f.waitPolicyOf(policy, live, "True", gateway.ReasonLive)
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	says(document.Problem{Route: -1, Reason: slipwayv1alpha1.ReasonLimitNotShared, Message: "nobody answers"})
	if got := f.waitPolicyOf(policy, live, "False", slipwayv1alpha1.ReasonLimitNotShared); !strings.HasSuffix(got, `-1": nobody answers`) {
		t.Errorf("it says %q", got)
	}
	f.waitRoute(route, gateway.ConditionLive, metav1.ConditionTrue, gateway.ReasonLive)
	says()
	f.waitPolicyOf(policy, live, "True", gateway.ReasonLive)
}

// The port by which the pods reach each other is nobody else's, with and without a limit that needs it.
func TestNoListenerHasThePortBetweenPods(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	g := f.gateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners,
			gatewayv1.Listener{Name: "between-pods", Port: 15022, Protocol: gatewayv1.TCPProtocolType},
			gatewayv1.Listener{Name: "datagrams", Port: 15022, Protocol: gatewayv1.UDPProtocolType})
	})
	f.create(f.class, g)
	f.waitListener(g, "between-pods", gatewayv1.ListenerConditionAccepted, metav1.ConditionFalse, gatewayv1.ListenerReasonPortUnavailable)
	f.waitListener(g, "datagrams", gatewayv1.ListenerConditionAccepted, metav1.ConditionTrue, gatewayv1.ListenerReasonAccepted)
	f.waitListener(g, "web", gatewayv1.ListenerConditionAccepted, metav1.ConditionTrue, gatewayv1.ListenerReasonAccepted)
}
