//go:build apitest

package webapp_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Pods start without a Secret to pull their image with, so they say nothing of it.
func TestAPullSecretThatDoesNotExistIsTold(t *testing.T) {
	f := newFixture(t)
	env.StartOperator(t, nil, f.namespace)
	app := f.running(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.ImagePullSecrets = []slipwayv1alpha1.LocalReference{{Name: "registry"}, {Name: "mirror"}}
	})
	const missing = slipwayv1alpha1.ConditionPullSecretMissing
	first := `Secret "registry" does not exist (spec.imagePullSecrets[0])`
	f.says(missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound, first, `Secret "mirror" does not exist (spec.imagePullSecrets[1])`)
	f.waitFor("Ready", metav1.ConditionTrue, "")

	f.create(f.secret("mirror", nil))
	reported := f.wait(func(a *slipwayv1alpha1.WebApp) error {
		return equal(first+": images are pulled without it", meta.FindStatusCondition(a.Status.Conditions, missing).Message)
	})
	if err := has(reported, "Ready", metav1.ConditionTrue, ""); err != nil {
		t.Error(err)
	}

	// It is why the image cannot be pulled, where that is so.
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = badImage })
	f.deployed(runsImage(badImage))
	f.stick(waitingContainer("ErrImagePull", "pull access denied, repository does not exist or may require authorization"))
	f.says("Degraded", metav1.ConditionTrue, "", first)

	f.create(f.secret("registry", nil))
	gone := func(a *slipwayv1alpha1.WebApp) error {
		return equal(true, meta.FindStatusCondition(a.Status.Conditions, missing) == nil)
	}
	f.wait(gone)
	f.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: f.namespace}})
	f.waitFor(missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.ImagePullSecrets = nil })
	f.wait(gone)
}
