package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// some conditions, each type once, as a controller computes them.
func some(s *generate.Source) []metav1.Condition {
	var list []metav1.Condition
	for _, conditionType := range []string{"Ready", "Degraded", "Stalled", "RolledBack"} {
		message := s.Text()
		switch s.Below(4) {
		case 0:
			list = append(list, status.True(conditionType, generate.Pick(s, "A", "B"), message))
		case 1:
			list = append(list, status.False(conditionType, generate.Pick(s, "A", "B"), message))
		case 2:
			// Around the length at which a message is cut.
			message += strings.Repeat("x", s.Below(40)) + strings.Repeat("ü", 485+s.Below(40)) + s.Text()
			list = append(list, status.True(conditionType, "Long", message))
		}
	}
	if s.Maybe() {
		slices.Reverse(list)
	}
	return list
}

// Setting conditions once is enough, times move only with the status, and what is said
// stays readable.
func FuzzMerge(f *testing.F) {
	generate.Seed(f, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		before := status.Merge(nil, some(source), 1, metav1.Unix(100, 0))
		next := some(source)
		given, computed := slices.Clone(before), slices.Clone(next)
		now := metav1.Unix(200, 0)

		merged := status.Merge(before, next, 2, now)

		if diff := cmp.Diff(given, before) + cmp.Diff(computed, next); diff != "" {
			t.Fatalf("the inputs were changed (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(merged, status.Merge(merged, next, 2, metav1.NewTime(now.Add(time.Hour)))); diff != "" {
			t.Errorf("set once and twice (-once +twice):\n%s", diff)
		}
		if len(merged) != len(next) {
			t.Fatalf("%d conditions of %d", len(merged), len(next))
		}
		for i, c := range merged {
			checkMerged(t, meta.FindStatusCondition(before, c.Type), next[i], c)
		}
		if reported := status.Transitions(merged, merged); len(reported) > 0 {
			t.Errorf("nothing happened, and it tells %v", reported)
		}
		for _, c := range status.Transitions(before, merged) {
			if old := meta.FindStatusCondition(before, c.Type); old != nil && old.Status == c.Status && old.Reason == c.Reason {
				t.Errorf("nothing happened to %s, and it is told: %v", c.Type, c)
			}
		}
	})
}

func checkMerged(t *testing.T, old *metav1.Condition, computed, merged metav1.Condition) {
	t.Helper()
	want := computed
	want.ObservedGeneration, want.LastTransitionTime, want.Message = 2, metav1.Unix(200, 0), merged.Message
	if old != nil && old.Status == computed.Status {
		want.LastTransitionTime = metav1.Unix(100, 0)
	}
	if diff := cmp.Diff(want, merged); diff != "" {
		t.Errorf("%s (-want +got):\n%s", computed.Type, diff)
	}
	if short := len(computed.Message) <= 1024; short != (merged.Message == computed.Message) {
		t.Errorf("a message of %d bytes became %q", len(computed.Message), merged.Message)
	}
	if len(merged.Message) > 1024 || !utf8.ValidString(merged.Message) {
		t.Errorf("%d bytes: %q", len(merged.Message), merged.Message)
	}
}
