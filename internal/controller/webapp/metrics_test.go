package webapp

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func TestRolloutResult(t *testing.T) {
	// status is one of an application whose last good revision is "old" unless said otherwise.
	status := func(change func(*slipwayv1alpha1.WebAppStatus)) *slipwayv1alpha1.WebApp {
		app := &slipwayv1alpha1.WebApp{}
		app.Status.LastGoodRevision = "old"
		change(&app.Status)
		return app
	}
	rolling := func(s *slipwayv1alpha1.WebAppStatus) { s.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "new"} }
	held := func(s *slipwayv1alpha1.WebAppStatus) {
		rolling(s)
		s.Conditions = []metav1.Condition{{Type: slipwayv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: slipwayv1alpha1.ReasonRolloutFailed}}
	}
	tests := map[string]struct {
		before, after func(*slipwayv1alpha1.WebAppStatus)
		want          string
	}{
		"complete":    {rolling, func(s *slipwayv1alpha1.WebAppStatus) { s.LastGoodRevision = "new" }, "complete"},
		"still rolls": {rolling, rolling, ""},
		"rolled back": {rolling, func(s *slipwayv1alpha1.WebAppStatus) {
			s.Rollback = &slipwayv1alpha1.RollbackStatus{FromRevision: "new"}
		}, "failed"},
		"held":                              {rolling, held, "failed"},
		"still held":                        {held, held, ""},
		"held, undone":                      {held, func(*slipwayv1alpha1.WebAppStatus) {}, ""},
		"held, and then it works after all": {held, func(s *slipwayv1alpha1.WebAppStatus) { s.LastGoodRevision = "new" }, ""},
		"replaced": {rolling, func(s *slipwayv1alpha1.WebAppStatus) {
			s.Rollout = &slipwayv1alpha1.RolloutStatus{Revision: "newer"}
		}, ""},
		"undone by the user, or paused": {rolling, func(*slipwayv1alpha1.WebAppStatus) {}, ""},
		"nothing was rolling":           {func(*slipwayv1alpha1.WebAppStatus) {}, func(s *slipwayv1alpha1.WebAppStatus) { s.LastGoodRevision = "new" }, ""},
		"rolled back from another, now undone": {rolling, func(s *slipwayv1alpha1.WebAppStatus) {
			s.Rollback = &slipwayv1alpha1.RollbackStatus{FromRevision: "other"}
		}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rolloutResult(status(tc.before), status(tc.after)); got != tc.want {
				t.Errorf("the result is %q, want %q", got, tc.want)
			}
		})
	}
}
