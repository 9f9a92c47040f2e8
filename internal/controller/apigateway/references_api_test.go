//go:build apitest

package apigateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// Pods start without a Secret to pull their image with, so they say nothing of it.
func TestAPullSecretThatDoesNotExistIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}}
	})
	const missing, want = slipwayv1alpha1.ConditionPullSecretMissing, `Secret "registry" does not exist (spec.imagePullSecrets[0])`
	reported := f.waitFor(missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
	if got := meta.FindStatusCondition(reported.Status.Conditions, missing).Message; got != want+": images are pulled without it" {
		t.Errorf("the message is %q, want %q in it", got, want)
	}
	if err := errors.Join(
		has(reported, slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonSecretNotFound),
		has(reported, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""),
	); err != nil {
		t.Error(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: f.namespace}}
	f.create(secret)
	f.wait(func(g *slipwayv1alpha1.APIGateway) error {
		if c := meta.FindStatusCondition(g.Status.Conditions, missing); c != nil {
			return errors.New(c.Message)
		}
		return has(g, slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, "")
	})
	f.delete(secret)
	f.waitFor(missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
}

// A class may be served without an address, and one that does not exist never is.
func TestAnIngressClassThatNobodyServesIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.Expose = &slipwayv1alpha1.Expose{Type: slipwayv1alpha1.ExposeIngress, IngressClassName: ptr("none")}
	})
	tells := func(want bool) {
		t.Helper()
		f.wait(func(g *slipwayv1alpha1.APIGateway) error {
			c := meta.FindStatusCondition(g.Status.Conditions, slipwayv1alpha1.ConditionReady)
			reported := strings.Contains(c.Message, `nothing has given Ingress "edge-ingress" an address: it is for the controller of IngressClass "none" (spec.expose.ingressClassName)`)
			if c.Status != metav1.ConditionTrue || reported != want {
				return fmt.Errorf("Ready is %+v", c)
			}
			return nil
		})
	}
	tells(true)
	ingress := &networkingv1.Ingress{}
	environment.Eventually(t, func() error {
		if err := f.get("edge-ingress", ingress); err != nil {
			return err
		}
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "203.0.113.10"}}
		return env.Client.Status().Update(t.Context(), ingress)
	})
	tells(false)
}
