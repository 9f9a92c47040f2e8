//go:build apitest

package apigateway_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Pods start without a Secret to pull their image with, so they say nothing of it.
func TestAPullSecretThatDoesNotExistIsTold(t *testing.T) {
	f := newFixture(t)
	f.startOperator(nil)
	f.running(func(g *slipwayv1alpha1.APIGateway) {
		g.Spec.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}}
	})
	const missing, want = slipwayv1alpha1.ConditionPullSecretMissing, `Secret "registry" does not exist (spec.imagePullSecrets[0])`
	told := f.waitFor(missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
	if got := meta.FindStatusCondition(told.Status.Conditions, missing).Message; got != want+": images are pulled without it" {
		t.Errorf("the message is %q, want %q in it", got, want)
	}
	if err := errors.Join(
		has(told, slipwayv1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, slipwayv1alpha1.ReasonSecretNotFound),
		has(told, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, ""),
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
