package status_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// recorder writes down what it is told.
type recorder struct{ reported []string }

func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	r.reported = append(r.reported, eventType+" "+reason+": "+fmt.Sprintf(note, args...))
}

var news = status.News{Good: []string{"Ready"}, Bad: []string{"Degraded", "Stalled"}}

func TestEventsTellWhatHappens(t *testing.T) {
	ready := status.True("Ready", "Ready", "all is well")
	starting := status.False("Ready", "RolloutInProgress", "starting")
	fine := status.False("Degraded", "AsExpected", "nothing is wrong")
	crash := status.True("Degraded", "CrashLoopBackOff", "exit code 3")
	notReady := status.False("Ready", "CrashLoopBackOff", "exit code 3")
	tests := map[string]struct {
		before, after []metav1.Condition
		want          []string
	}{
		"a new object that is starting": {nil, []metav1.Condition{starting, fine}, nil},
		"nothing":                       {[]metav1.Condition{ready, fine}, []metav1.Condition{ready, fine}, nil},
		"ready":                         {[]metav1.Condition{starting}, []metav1.Condition{ready}, []string{"Normal Ready: all is well"}},
		"ready for another reason": {
			[]metav1.Condition{ready},
			[]metav1.Condition{status.True("Ready", "ScaledToZero", "nothing runs")},
			nil,
		},
		"trouble": {
			[]metav1.Condition{ready, fine},
			[]metav1.Condition{notReady, crash},
			[]string{"Warning CrashLoopBackOff: exit code 3"},
		},
		"the same trouble in two conditions": {
			nil,
			[]metav1.Condition{status.True("Degraded", "NameConflict", "no"), status.True("Stalled", "NameConflict", "no")},
			[]string{"Warning NameConflict: no"},
		},
		"trouble over": {[]metav1.Condition{starting, crash}, []metav1.Condition{starting, fine}, nil},
		"a percent sign is text": {
			nil,
			[]metav1.Condition{status.True("Degraded", "A", "disk 100% full")},
			[]string{"Warning A: disk 100% full"},
		},
		"trouble that gets another reason": {
			[]metav1.Condition{crash},
			[]metav1.Condition{status.True("Degraded", "OOMKilled", "no memory")},
			[]string{"Warning OOMKilled: no memory"},
		},
		"what the kind does not declare": {
			nil,
			[]metav1.Condition{status.True("Paused", "Paused", "spec.paused"), status.True("Available", "ReplicasReady", "serves")},
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			status.Record(r, news, &slipwayv1alpha1.WebApp{}, tc.before, tc.after)
			if diff := cmp.Diff(tc.want, r.reported); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
