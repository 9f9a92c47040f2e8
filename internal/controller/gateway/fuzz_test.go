package gateway

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/status"
)

// Whatever entries the status of a route has: those of other controllers and of other Gateways stay as they are and in their
// order, ours are one for each parentRef, at most as many as fit, and to say the same again changes nothing.
func FuzzEntries(f *testing.F) {
	f.Add("edge theirs:edge other edge/web", "edge edge/web", "Their")
	f.Add("theirs:a theirs:b edge edge", "edge", "Accepted")
	f.Add("edge", "", "")
	f.Fuzz(func(t *testing.T, are, wanted, foreign string) {
		gateway := types.NamespacedName{Namespace: "team", Name: "edge"}
		now := metav1.NewTime(time.Unix(1000, 0))
		var before []gatewayv1.RouteParentStatus
		for _, word := range strings.Fields(are) {
			entry := gatewayv1.RouteParentStatus{ControllerName: Controller}
			name, theirs := strings.CutPrefix(word, "theirs:")
			if theirs {
				entry.ControllerName = "example.com/other"
			}
			entry.ParentRef = refOf(name)
			if foreign != "" {
				entry.Conditions = []metav1.Condition{{Type: foreign, Status: metav1.ConditionTrue, Reason: "Any"}}
			}
			before = append(before, entry)
		}
		before = before[:min(len(before), maxParents)]
		var all []parentStatus
		seen := map[string]bool{}
		for _, word := range strings.Fields(wanted) {
			if name, _, _ := strings.Cut(word, "/"); name == gateway.Name && !seen[word] {
				seen[word] = true
				all = append(all, parentStatus{ref: refOf(word), conditions: []metav1.Condition{status.True("Accepted", "Accepted", "")}})
			}
		}
		after := entries(before, "team", ofGateway(gateway, nil), all, 7, now)
		if want, got := foreignOf(before, gateway), foreignOf(after, gateway); !reflect.DeepEqual(want, got) {
			t.Errorf("entries of others: %+v, want %+v", got, want)
		}
		if ours := len(after) - len(foreignOf(after, gateway)); ours > len(all) || (ours < len(all) && len(after) < maxParents) {
			t.Errorf("%d entries of ours for %d parentRefs, in %d", ours, len(all), len(after))
		}
		if len(after) > maxParents {
			t.Errorf("%d entries", len(after))
		}
		if again := entries(after, "team", ofGateway(gateway, nil), all, 7, metav1.NewTime(time.Unix(2000, 0))); len(after) > 0 && !reflect.DeepEqual(after, again) {
			t.Errorf("said again it is %+v, before %+v", again, after)
		}
	})
}

func refOf(word string) gatewayv1.ParentReference {
	name, section, found := strings.Cut(word, "/")
	ref := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
	if found {
		of := gatewayv1.SectionName(section)
		ref.SectionName = &of
	}
	return ref
}

// foreignOf are the entries that are not ours of the Gateway.
func foreignOf(all []gatewayv1.RouteParentStatus, gateway types.NamespacedName) []gatewayv1.RouteParentStatus {
	var others []gatewayv1.RouteParentStatus
	for _, entry := range all {
		if entry.ControllerName != Controller || string(entry.ParentRef.Name) != gateway.Name {
			others = append(others, entry)
		}
	}
	return others
}
