//go:build e2e

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestARollbackKeepsWhatTheFailedRevisionHungIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app())
	good := f.good()
	f.edit(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Port = 9090
		s.Rollout = &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr(int32(10))}
	})
	// It is starting until the deadline has passed.
	f.wait(is(slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, ""), is(slipwayv1alpha1.ConditionProgressing, metav1.ConditionTrue, ""))
	f.rolledBack(good, badRollout{
		reason: slipwayv1alpha1.ReasonProbeFailing,
		parts:  []string{`Deployment "shop"`, "spec.rollout.progressDeadlineSeconds", `pod "shop-`, "GET /healthz on port 9090: connection refused (spec.port)"},
	})
}
