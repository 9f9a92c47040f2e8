package gatewayapi

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// limitedTo are a Gateway and a route in namespace infra that refer to Secret, ConfigMap and Service of namespace data, which
// exist and which grants permit.
func limitedTo(only ...string) Input {
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}}
	in := gatewayv1.Namespace("data")
	gateway.Spec.Listeners = []gatewayv1.Listener{
		{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType},
		{Name: "tls", Port: 443, Protocol: gatewayv1.HTTPSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{
			CertificateRefs: []gatewayv1.SecretObjectReference{{Namespace: &in, Name: "web"}},
		}},
	}
	gateway.Spec.TLS = &gatewayv1.GatewayTLSConfig{Frontend: &gatewayv1.FrontendTLSConfig{Default: gatewayv1.TLSConfig{
		Validation: &gatewayv1.FrontendTLSValidation{CACertificateRefs: []gatewayv1.ObjectReference{{Kind: "ConfigMap", Namespace: &in, Name: "ca"}}},
	}}}
	port := gatewayv1.PortNumber(80)
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shop"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "edge"}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Namespace: &in, Name: "db", Port: &port},
	}}}}}
	from := []gatewayv1.ReferenceGrantFrom{{Group: group, Kind: "Gateway", Namespace: "infra"}, {Group: group, Kind: "HTTPRoute", Namespace: "infra"}}
	to := []gatewayv1.ReferenceGrantTo{{Kind: "Secret"}, {Kind: "ConfigMap"}, {Kind: "Service"}}
	name := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "data", Name: name} }
	return Input{
		Gateway: gateway, HTTPRoutes: []*gatewayv1.HTTPRoute{route}, Only: only,
		Grants: []*gatewayv1.ReferenceGrant{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "data", Name: "all"}, Spec: gatewayv1.ReferenceGrantSpec{From: from, To: to},
		}},
		Namespaces: map[string]map[string]string{"infra": {"team": "blue"}},
		Services:   map[types.NamespacedName]Service{name("db"): {Ports: map[int32]Port{80: {}}}},
		Secrets:    map[types.NamespacedName]Secret{name("web"): {}},
		Bundles:    map[types.NamespacedName]Bundle{name("ca"): {}},
	}
}

// What is in a namespace that is not watched is not there, and status says why. Whether a grant permits it nobody knows either.
func TestWhatIsNotWatchedIsNotThere(t *testing.T) {
	for name, tc := range map[string]struct {
		only []string
		want string // in each message; empty: all can be used
	}{
		"not limited":             {nil, ""},
		"limited to both":         {[]string{"data", "infra"}, ""},
		"limited to the Gateways": {[]string{"infra"}, `is in namespace "data", which Slipway does not watch`},
	} {
		t.Run(name, func(t *testing.T) {
			g := Build(limitedTo(tc.only...))
			parent := g.Routes[0].Parents[0]
			listener := g.Listeners[1]
			for _, c := range []*metav1.Condition{find(parent.Conditions, "ResolvedRefs"), find(listener.Conditions, "ResolvedRefs")} {
				if (c.Status == metav1.ConditionTrue) != (tc.want == "") || !strings.Contains(c.Message, tc.want) {
					t.Errorf("%+v, want %q", c, tc.want)
				}
			}
			if tc.want == "" {
				return
			}
			if c := find(parent.Conditions, "ResolvedRefs"); c.Reason != string(gatewayv1.RouteReasonBackendNotFound) {
				t.Errorf("the route's reason is %s", c.Reason)
			}
			if listener.Valid {
				t.Error("the listener is served without its certificate")
			}
			if g.Rules[0].Backends[0].Fault == nil {
				t.Error("requests are sent to a Service that is not watched")
			}
		})
	}
}

func find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return &metav1.Condition{}
}

// A label that is not known is none that is missing: a selector by it would let in what it is to keep out.
func TestASelectorByALabelThatIsNotKnownSelectsNothing(t *testing.T) {
	not := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}}}
	}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		limited  bool
		want     bool
	}{
		"a label":                      {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}, false, true},
		"a label, limited":             {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}, true, false},
		"without a label":              {not("untrusted"), false, true},
		"without a label, limited":     {not("untrusted"), true, false},
		"the name, limited":            {&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "infra"}}, true, true},
		"another name, limited":        {&metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "data"}}, true, false},
		"whatever is watched, limited": {&metav1.LabelSelector{}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := limitedTo()
			if tc.limited {
				in.Only = []string{"infra"}
			}
			from := gatewayv1.NamespacesFromSelector
			in.Gateway.Spec.Listeners = in.Gateway.Spec.Listeners[:1]
			in.Gateway.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &from, Selector: tc.selector}}
			in.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &from, Selector: tc.selector}}
			set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "more"}}
			set.Spec.ParentRef.Name = "edge"
			in.ListenerSets = []*gatewayv1.ListenerSet{set}
			g := Build(in)
			if got := g.Routes[0].Parents[0].Accepted(); got != tc.want {
				t.Errorf("the route is let in: %v, want %v", got, tc.want)
			}
			if got := len(AllowedSets(in)) > 0; got != tc.want {
				t.Errorf("the ListenerSet is let in: %v, want %v", got, tc.want)
			}
		})
	}
}
