package gatewayapi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Each grant is wrong in one field, and permits nothing.
func TestAGrantPermitsWhatItNamesAndNothingElse(t *testing.T) {
	name := gatewayv1.ObjectName("db")
	other := gatewayv1.ObjectName("other")
	from := gatewayv1.ReferenceGrantFrom{Group: group, Kind: "HTTPRoute", Namespace: "team"}
	to := gatewayv1.ReferenceGrantTo{Kind: "Service", Name: &name}
	grant := func(namespace string, from gatewayv1.ReferenceGrantFrom, to gatewayv1.ReferenceGrantTo) *gatewayv1.ReferenceGrant {
		return &gatewayv1.ReferenceGrant{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
			Spec:       gatewayv1.ReferenceGrantSpec{From: []gatewayv1.ReferenceGrantFrom{from}, To: []gatewayv1.ReferenceGrantTo{to}},
		}
	}
	tests := map[string]struct {
		grants []*gatewayv1.ReferenceGrant
		want   bool
	}{
		"none":                   {nil, false},
		"the right one":          {[]*gatewayv1.ReferenceGrant{grant("data", from, to)}, true},
		"every name":             {[]*gatewayv1.ReferenceGrant{grant("data", from, gatewayv1.ReferenceGrantTo{Kind: "Service"})}, true},
		"where the route is":     {[]*gatewayv1.ReferenceGrant{grant("team", from, to)}, false},
		"another group":          {[]*gatewayv1.ReferenceGrant{grant("data", gatewayv1.ReferenceGrantFrom{Kind: "HTTPRoute", Namespace: "team"}, to)}, false},
		"another kind":           {[]*gatewayv1.ReferenceGrant{grant("data", gatewayv1.ReferenceGrantFrom{Group: group, Kind: "Gateway", Namespace: "team"}, to)}, false},
		"from another namespace": {[]*gatewayv1.ReferenceGrant{grant("data", gatewayv1.ReferenceGrantFrom{Group: group, Kind: "HTTPRoute", Namespace: "x"}, to)}, false},
		"to another group":       {[]*gatewayv1.ReferenceGrant{grant("data", from, gatewayv1.ReferenceGrantTo{Group: "x", Kind: "Service", Name: &name})}, false},
		"to another kind":        {[]*gatewayv1.ReferenceGrant{grant("data", from, gatewayv1.ReferenceGrantTo{Kind: "Secret", Name: &name})}, false},
		"to another name":        {[]*gatewayv1.ReferenceGrant{grant("data", from, gatewayv1.ReferenceGrantTo{Kind: "Service", Name: &other})}, false},
		"halves of two":          {[]*gatewayv1.ReferenceGrant{grant("data", from, gatewayv1.ReferenceGrantTo{Kind: "Secret"}), grant("data", gatewayv1.ReferenceGrantFrom{Group: group, Kind: "Gateway", Namespace: "team"}, to)}, false},
		"the second one":         {[]*gatewayv1.ReferenceGrant{grant("x", from, to), grant("data", from, to)}, true},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			r := reference{fromGroup: group, fromKind: "HTTPRoute", fromNamespace: "team", toKind: "Service", to: types.NamespacedName{Namespace: "data", Name: "db"}}
			if got := newGrants(tc.grants).permit(r); got != tc.want {
				t.Errorf("permitted: %t, want %t", got, tc.want)
			}
			r.to.Namespace = "team"
			if !newGrants(tc.grants).permit(r) {
				t.Error("a reference within the namespace is not permitted")
			}
		})
	}
}
