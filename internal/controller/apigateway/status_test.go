package apigateway

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// The API server gives an object that is deleted another generation, as for an edit.
func TestADeletedGatewaySaysOnlyWhatWasSeenOfItsSpec(t *testing.T) {
	const judged = 2
	tests := map[string]struct {
		generation int64  // of the gateway that is being deleted
		ready      string // the reason of Ready, of generation 2
		kept       bool
	}{
		"deleted as it was judged":          {3, slipwayv1alpha1.ReasonReady, true},
		"edited, and deleted before a look": {4, slipwayv1alpha1.ReasonReady, false},
		"it is told that it goes":           {2, slipwayv1alpha1.ReasonTerminating, true},
		"edited while it goes":              {3, slipwayv1alpha1.ReasonTerminating, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := runningScope()
			s.gateway.Generation = tc.generation
			types := []string{slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs}
			s.gateway.Status.Conditions = []metav1.Condition{{
				Type: slipwayv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: tc.ready, ObservedGeneration: judged,
			}}
			for _, conditionType := range types {
				s.gateway.Status.Conditions = append(s.gateway.Status.Conditions, metav1.Condition{
					Type: conditionType, Status: metav1.ConditionTrue, Reason: "Fine", ObservedGeneration: judged,
				})
			}
			next := s.terminatingStatus(time.Unix(1000, 0))
			for _, conditionType := range types {
				want := metav1.Condition{Status: metav1.ConditionUnknown, Reason: slipwayv1alpha1.ReasonTerminating}
				if tc.kept {
					want = metav1.Condition{Status: metav1.ConditionTrue, Reason: "Fine"}
				}
				if c := meta.FindStatusCondition(next.Conditions, conditionType); c.Status != want.Status || c.Reason != want.Reason {
					t.Errorf("%s is %s %s, want %s %s", conditionType, c.Status, c.Reason, want.Status, want.Reason)
				}
			}
		})
	}
}
