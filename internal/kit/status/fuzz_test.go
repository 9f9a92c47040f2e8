package status_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// An event is reported once, in the words of a condition that has come true, and not again
// while nothing changes.
func FuzzRecord(f *testing.F) {
	generate.Seed(f, 40)
	some := func(s *generate.Source) []metav1.Condition {
		var list []metav1.Condition
		for _, conditionType := range []string{"Ready", "Available", "Progressing", "Degraded", "Stalled"} {
			make := generate.Pick(s, status.True, status.False)
			if c := make(conditionType, generate.Pick(s, "A", "B"), generate.Pick(s, "disk 100% full", "disk 100% full", s.Text())); s.Maybe() {
				list = append(list, c)
			}
		}
		return list
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		before, after := some(source), some(source)
		r := &recorder{}
		status.Record(r, news, &slipwayv1alpha1.WebApp{}, before, after)
		reported := map[string]bool{}
		for _, event := range r.reported {
			_, note, _ := strings.Cut(event, ": ")
			if reported[note] {
				t.Errorf("told twice: %q", r.reported)
			}
			reported[note] = true
			if !slices.ContainsFunc(after, func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue && c.Message == note }) {
				t.Errorf("no condition of %v says %q", after, event)
			}
		}
		r.reported = nil
		status.Record(r, news, &slipwayv1alpha1.WebApp{}, after, after)
		if len(r.reported) > 0 {
			t.Errorf("nothing happened, and it tells %q", r.reported)
		}
	})
}
