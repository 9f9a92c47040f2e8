package apigateway

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// A reconcile that read its objects before the Gateway API was found takes its Gateway for
// missing. It must neither make the HTTPRoute nor report on it.
func TestAReconcileFromBeforeTheGatewayAPIWasFoundIsRepeated(t *testing.T) {
	s := runningScope()
	s.gateway.Spec.Expose = &slipwayv1alpha1.Expose{
		Type: slipwayv1alpha1.ExposeHTTPRoute, Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}},
	}
	api := &gatewayAPI{}
	api.running.Store(&apply.Applier{})
	err := api.apply(t.Context(), s)
	if policy := (&outcome.Error{}); !errors.As(err, &policy) || policy.Kind != outcome.Quiet {
		t.Errorf("%v, want a quiet repetition", err)
	}
}

// Nobody may look at a Gateway outside of the namespaces that the operator works in. What it
// says of the HTTPRoute is in the HTTPRoute, and counts.
func TestAGatewayThatIsNotWatchedIsJudgedByWhatItSaysOfTheHTTPRoute(t *testing.T) {
	tests := map[string]struct {
		notWatched  bool
		says        metav1.ConditionStatus // of the HTTPRoute; empty: nothing
		ready       metav1.ConditionStatus
		reason      string
		mentionedIn bool // whether the message of Ready says that nobody may look
	}{
		"it has said nothing":             {true, "", metav1.ConditionFalse, slipwayv1alpha1.ReasonParentNotWatched, true},
		"it takes the HTTPRoute":          {true, metav1.ConditionTrue, metav1.ConditionTrue, slipwayv1alpha1.ReasonReady, true},
		"it refuses the HTTPRoute":        {true, metav1.ConditionFalse, metav1.ConditionFalse, slipwayv1alpha1.ReasonParentRefused, false},
		"it is watched and there is none": {false, "", metav1.ConditionFalse, slipwayv1alpha1.ReasonParentNotFound, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := runningScope(replica.Answer{State: replica.Answering, Document: &document.Document{UID: "uid", Generation: 3}})
			s.gateway.Spec.Expose = &slipwayv1alpha1.Expose{
				Type:    slipwayv1alpha1.ExposeHTTPRoute,
				Gateway: &slipwayv1alpha1.ParentGateway{LocalReference: slipwayv1alpha1.LocalReference{Name: "shared"}, Namespace: "infra"},
			}
			s.parentNotWatched = tc.notWatched
			ref := gatewayv1.ParentReference{Name: "shared"}
			route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "route"}}
			route.Spec.ParentRefs = []gatewayv1.ParentReference{ref}
			if tc.says != "" {
				route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: ref, Conditions: []metav1.Condition{{
					Type: string(gatewayv1.RouteConditionAccepted), Status: tc.says, Reason: "Because",
				}}}}
			}
			s.httpRoutes = []*gatewayv1.HTTPRoute{route}
			s.judgePods(time.Unix(1000, 0))
			s.judgeRoutes()
			ready := meta.FindStatusCondition(s.status(time.Unix(1000, 0)).Conditions, slipwayv1alpha1.ConditionReady)
			mentioned := strings.Contains(ready.Message, `does not work in namespace "infra"`)
			if ready.Status != tc.ready || ready.Reason != tc.reason || mentioned != tc.mentionedIn {
				t.Errorf("Ready is %s %s (%s), want %s %s", ready.Status, ready.Reason, ready.Message, tc.ready, tc.reason)
			}
		})
	}
}
