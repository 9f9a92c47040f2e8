package truth_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

func check(t *testing.T, kind string, typed any) string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: gatewayv1.GroupName, Version: "v1", Kind: kind})
	if err := truth.CheckGatewayAPIAtRest(object); err != nil {
		return err.Error()
	}
	return ""
}

func condition(conditionType string, is bool, generation int64) metav1.Condition {
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: "Reason", Message: "message", ObservedGeneration: generation}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestGatewaysThatSayWhatIsNotTrueAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*gatewayv1.Gateway)
		says   string
	}{
		"a true one": {func(*gatewayv1.Gateway) {}, ""},
		"nobody's": {func(g *gatewayv1.Gateway) {
			g.Status = gatewayv1.GatewayStatus{Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionUnknown}}}
		}, ""},
		"an earlier generation":   {func(g *gatewayv1.Gateway) { g.Generation = 3 }, "speaks of generation 2 of 3"},
		"programmed, not so":      {func(g *gatewayv1.Gateway) { g.Status.Conditions[0] = condition("Accepted", false, 2) }, "programmed, and not accepted"},
		"no address":              {func(g *gatewayv1.Gateway) { g.Status.Addresses = nil }, "without an address"},
		"a listener that is gone": {func(g *gatewayv1.Gateway) { g.Spec.Listeners[0].Name = "other" }, `listener "web", which the spec does not have`},
		"a listener is missing":   {func(g *gatewayv1.Gateway) { g.Status.Listeners = nil }, "0 listeners, and the spec 1"},
		"nothing is served": {func(g *gatewayv1.Gateway) {
			g.Status.Listeners[0].Conditions[2] = condition("Programmed", false, 2)
		}, "no listener is"},
		"a listener says nothing": {func(g *gatewayv1.Gateway) { g.Status.Listeners[0].Conditions = nil }, "has no condition Programmed"},
		"a listener not accepted": {func(g *gatewayv1.Gateway) { g.Status.Listeners[0].Conditions[0] = condition("Accepted", false, 2) }, "and not accepted"},
		"a conflict that is served": {func(g *gatewayv1.Gateway) {
			g.Status.Listeners[0].Conditions = append(g.Status.Listeners[0].Conditions, condition("Conflicted", true, 2))
		}, "and conflicted"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gatewayv1.Gateway{
				ObjectMeta: metav1.ObjectMeta{Generation: 2},
				Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{{Name: "web"}}},
				Status: gatewayv1.GatewayStatus{
					Addresses:  []gatewayv1.GatewayStatusAddress{{Value: "203.0.113.10"}},
					Conditions: []metav1.Condition{condition("Accepted", true, 2), condition("Programmed", true, 2)},
					Listeners: []gatewayv1.ListenerStatus{{Name: "web", Conditions: []metav1.Condition{
						condition("Accepted", true, 2), condition("ResolvedRefs", true, 2), condition("Programmed", true, 2),
					}}},
				},
			}
			tc.change(g)
			expect(t, check(t, "Gateway", g), tc.says)
		})
	}
}

func TestRoutesThatSayWhatIsNotTrueAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*gatewayv1.HTTPRoute)
		says   string
	}{
		"a true one":            {func(*gatewayv1.HTTPRoute) {}, ""},
		"of another controller": {func(r *gatewayv1.HTTPRoute) { r.Status.Parents[0].ControllerName, r.Generation = "other", 9 }, ""},
		"an earlier generation": {func(r *gatewayv1.HTTPRoute) { r.Generation = 3 }, "speaks of generation 2 of 3"},
		"a parent that is gone": {func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "other" }, "is for no parent of the spec"},
		"live, and not accepted": {func(r *gatewayv1.HTTPRoute) {
			r.Status.Parents[0].Conditions[0] = condition("Accepted", false, 2)
		}, "live, and not accepted"},
		"nothing is said": {func(r *gatewayv1.HTTPRoute) { r.Status.Parents[0].Conditions = nil }, "has no condition Accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			ref := gatewayv1.ParentReference{Name: "edge"}
			r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			r.Spec.ParentRefs = []gatewayv1.ParentReference{ref}
			r.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: ref, ControllerName: gateway.Controller, Conditions: []metav1.Condition{
				condition("Accepted", true, 2), condition("ResolvedRefs", true, 2), condition(gateway.ConditionLive, true, 2),
			}}}
			tc.change(r)
			expect(t, check(t, "HTTPRoute", r), tc.says)
		})
	}
}

func TestAClassThatSaysNothingOfItselfIsFound(t *testing.T) {
	class := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "other"}}
	expect(t, check(t, "GatewayClass", class), "")
	class.Spec.ControllerName = gateway.Controller
	expect(t, check(t, "GatewayClass", class), "has no condition Accepted")
	class.Status.Conditions = []metav1.Condition{condition("Accepted", false, 2)}
	expect(t, check(t, "GatewayClass", class), "")
}
