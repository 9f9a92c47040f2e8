//go:build apitest

package webapp_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func TestAWebAppOfThreeLinesBecomesReady(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(f.app())
	f.deployed(runsImage("registry.example.com/shop:1"))
	environment.Eventually(t, func() error { return f.get("shop", &corev1.Service{}) })
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRolloutInProgress)
	f.rollOut()
	app := f.waitFor(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, "")
	t.Logf("%+v", app.Status)
	if app.Status.LastGoodRevision == "" || app.Status.LastGoodRevision != app.Status.Revision {
		t.Errorf("last good revision %q, runs %q", app.Status.LastGoodRevision, app.Status.Revision)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "registry.example.com/shop:2" })
	f.deployed(runsImage("registry.example.com/shop:2"))
	f.rollOut()
	before := f.settle()
	if before.Generation != 2 {
		t.Errorf("the Deployment was changed %d times, want once", before.Generation-1)
	}
	_ = appsv1.Deployment{}
}
