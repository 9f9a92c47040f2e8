package status_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/kit/status"
)

var (
	before = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now    = metav1.NewTime(before.Add(time.Hour))
)

func at(c metav1.Condition, generation int64, since metav1.Time) metav1.Condition {
	c.ObservedGeneration, c.LastTransitionTime = generation, since
	return c
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		previous, next, want []metav1.Condition
	}{
		"new": {
			nil,
			[]metav1.Condition{status.True("Ready", "A", "a")},
			[]metav1.Condition{at(status.True("Ready", "A", "a"), 7, now)},
		},
		"same status keeps its time, other reason": {
			[]metav1.Condition{at(status.True("Ready", "A", "a"), 6, before)},
			[]metav1.Condition{status.True("Ready", "B", "b")},
			[]metav1.Condition{at(status.True("Ready", "B", "b"), 7, before)},
		},
		"other status": {
			[]metav1.Condition{at(status.True("Ready", "A", "a"), 6, before)},
			[]metav1.Condition{status.False("Ready", "A", "a")},
			[]metav1.Condition{at(status.False("Ready", "A", "a"), 7, now)},
		},
		"dropped": {
			[]metav1.Condition{at(status.True("Stalled", "A", "a"), 6, before)},
			nil,
			[]metav1.Condition{},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, status.Merge(tc.previous, tc.next, 7, now)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	long := status.True("Ready", "A", "x"+strings.Repeat("ü", 1000))
	got := status.Merge(nil, []metav1.Condition{long}, 1, now)[0].Message
	if len(got) > 1024 || !strings.HasSuffix(got, "...") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-5:])
	}
}

func TestTransitions(t *testing.T) {
	previous := []metav1.Condition{status.True("Ready", "A", "a"), status.False("Degraded", "B", "b"), status.True("Stalled", "C", "c")}
	next := []metav1.Condition{status.True("Ready", "A", "another message"), status.True("Degraded", "B", "b"), status.True("New", "D", "d")}
	want := []metav1.Condition{next[1], next[2]}
	if diff := cmp.Diff(want, status.Transitions(previous, next)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
