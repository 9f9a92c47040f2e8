//go:build conformance

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

// stranger is the condition that somebody else states.
var stranger = metav1.Condition{
	Type: "example.com/Checked", Status: metav1.ConditionTrue, Reason: "Checked", Message: "stated by somebody else", ObservedGeneration: 1,
	LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
}

// update changes an object as it is, and its status where that is asked for, as somebody else would: with a whole update.
func update[T client.Object](t *testing.T, s *suite.ConformanceTestSuite, object T, ofStatus bool, change func(T)) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), s.TimeoutConfig.GetTimeout)
		defer cancel()
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		if ofStatus {
			return s.Client.Status().Update(ctx, object)
		}
		return s.Client.Update(ctx, object)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until an object is as it should be.
func eventually[T client.Object](t *testing.T, s *suite.ConformanceTestSuite, what string, object T, is func(T) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), s.TimeoutConfig.DefaultPollInterval, s.TimeoutConfig.MaxTimeToConsistency, true, func(ctx context.Context) (bool, error) {
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil && is(object), err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%+v", what, err, object)
	}
}

// What others state of a Gateway and its listeners stays when the Gateway changes.
func testForeignConditions(t *testing.T, s *suite.ConformanceTestSuite) {
	accepted(t, s, "own-foreign-status", "own-foreign-status")
	gateway := &gatewayv1.Gateway{ObjectMeta: named("own-foreign-status")}
	update(t, s, gateway, true, func(g *gatewayv1.Gateway) {
		meta.SetStatusCondition(&g.Status.Conditions, stranger)
		meta.SetStatusCondition(&g.Status.Listeners[0].Conditions, stranger)
	})
	update(t, s, gateway, false, func(g *gatewayv1.Gateway) {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 8080, Protocol: gatewayv1.HTTPProtocolType})
	})
	eventually(t, s, "a listener more is served", gateway, func(g *gatewayv1.Gateway) bool {
		programmed := meta.FindStatusCondition(g.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		return programmed != nil && programmed.Status == metav1.ConditionTrue && programmed.ObservedGeneration == g.Generation && len(g.Status.Listeners) == 2
	})
	for where, conditions := range map[string][]metav1.Condition{"the Gateway": gateway.Status.Conditions, "its listener": gateway.Status.Listeners[0].Conditions} {
		if diff := cmp.Diff(&stranger, meta.FindStatusCondition(conditions, stranger.Type)); diff != "" {
			t.Errorf("somebody else's condition of %s (-stated +is):\n%s", where, diff)
		}
	}
}

// What another controller says of a route stays, whatever becomes of the route and of what we say.
func testForeignParents(t *testing.T, s *suite.ConformanceTestSuite) {
	accepted(t, s, "own-foreign-status", "own-foreign-status")
	theirs := gatewayv1.RouteParentStatus{
		ParentRef:      gatewayv1.ParentReference{Name: "somewhere-else"},
		ControllerName: "example.com/controller", Conditions: []metav1.Condition{stranger},
	}
	route := &gatewayv1.HTTPRoute{ObjectMeta: named("own-foreign-status")}
	update(t, s, route, true, func(r *gatewayv1.HTTPRoute) {
		r.Status.Parents = append([]gatewayv1.RouteParentStatus{theirs}, r.Status.Parents...)
	})
	kept := func() {
		t.Helper()
		for _, parent := range route.Status.Parents {
			if parent.ControllerName == theirs.ControllerName {
				if diff := cmp.Diff(theirs, parent, ignoreDefaults); diff != "" {
					t.Errorf("another controller's entry (-stated +is):\n%s", diff)
				}
				return
			}
		}
		t.Errorf("another controller's entry is gone: %+v", route.Status.Parents)
	}
	update(t, s, route, false, func(r *gatewayv1.HTTPRoute) { r.Spec.Rules[0].BackendRefs[0].Name = "nobody" })
	eventually(t, s, "the new generation is judged", route, func(r *gatewayv1.HTTPRoute) bool {
		resolved := ourCondition(r, s, gatewayv1.RouteConditionResolvedRefs)
		return resolved != nil && resolved.ObservedGeneration == r.Generation && resolved.Status == metav1.ConditionFalse
	})
	kept()
	update(t, s, route, false, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs = nil })
	eventually(t, s, "our entry goes with the parent", route, func(r *gatewayv1.HTTPRoute) bool {
		return ourCondition(r, s, gatewayv1.RouteConditionAccepted) == nil && len(r.Spec.ParentRefs) == 0
	})
	kept()
}

// ignoreDefaults leaves out what the API server adds to a reference.
var ignoreDefaults = cmpopts.IgnoreFields(gatewayv1.ParentReference{}, "Group", "Kind")

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: suite.InfrastructureNamespace, Name: name}
}

// ourCondition returns a condition of the implementation that is tested, or nil.
func ourCondition(route *gatewayv1.HTTPRoute, s *suite.ConformanceTestSuite, kind gatewayv1.RouteConditionType) *metav1.Condition {
	for _, parent := range route.Status.Parents {
		if string(parent.ControllerName) == s.ControllerName {
			return meta.FindStatusCondition(parent.Conditions, string(kind))
		}
	}
	return nil
}
