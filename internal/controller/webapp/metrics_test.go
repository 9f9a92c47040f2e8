package webapp

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/truth"
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

// Every reason that concerns pods, or what creates them, may be the reason of a failed rollout.
func TestRolloutsAreCountedFromZero(t *testing.T) {
	reasons, err := truth.Reasons()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for value, reason := range reasons {
		values[reason.Constant] = value
	}
	want := []string{
		// What a deadline and a volume make of it.
		slipwayv1alpha1.ReasonProgressDeadlineExceeded, slipwayv1alpha1.ReasonVolumePending,
	}
	named := regexp.MustCompile(`slipwayv1alpha1\.(Reason\w+)`)
	for _, file := range []string{"pod.go", "probe.go", "event.go", "refusal.go"} {
		source, err := os.ReadFile(filepath.Join("..", "..", "health", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllSubmatch(source, -1) {
			want = append(want, values[string(found[1])])
		}
	}
	// Said of a pod that goes, which is no failure.
	want = slices.DeleteFunc(want, func(reason string) bool { return reason == slipwayv1alpha1.ReasonTerminating })
	slices.Sort(want)
	counted := zeroSeries(t)
	if diff := cmp.Diff(slices.Compact(want), counted[Rollbacks.Name]); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"complete", "failed"}, counted[RolloutDuration.Name]); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// zeroSeries are the labels of what a new controller has counted nothing of, by metric.
func zeroSeries(t *testing.T) map[string][]string {
	t.Helper()
	m := newCounters()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m.rollbacks, m.duration)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if series.GetCounter().GetValue() == 0 && series.GetHistogram().GetSampleCount() == 0 {
				labels[family.GetName()] = append(labels[family.GetName()], series.GetLabel()[0].GetValue())
			}
		}
	}
	return labels
}
