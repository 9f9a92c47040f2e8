package gatewayapi_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// Each field of a GatewayPolicy that names something, in either stanza: what there is not is told, with the field and the name. What
// is fetched is told by the pods, see KeyAddresses, and targets that do not exist by the operator.
func TestWhatAPolicyNamesAndThereIsNotIsTold(t *testing.T) {
	rows := map[string]struct{ targets, auth, reason, says string }{
		"spec.targetRefs[].sectionName": {`[{kind: HTTPRoute, name: web, sectionName: none}]`, `{jwt: {issuer: id, jwksURL: "https://id.test/keys"}}`, slipwayv1alpha1.ReasonPolicyTargetNotFound, `spec.targetRefs: there is no rule "none" of HTTPRoute "web"`},
	}
	for field, row := range map[string]struct{ auth, reason, says string }{
		"apiKey.secretRef.name":        {`{apiKey: {secretRef: {name: none}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.apiKey.secretRef: Secret "none" does not exist`},
		"basic.secretRef.name":         {`{basic: {secretRef: {name: none}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.basic.secretRef: Secret "none" does not exist`},
		"external.backendService.name": {`{external: {backendService: {name: none, port: 80}}}`, slipwayv1alpha1.ReasonBackendNotFound, `auth.external.backendService: Service "none" does not exist`},
		"jwt.jwksSecretRef.name":       {`{jwt: {issuer: id, jwksSecretRef: {name: none, key: a}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.jwt.jwksSecretRef: Secret "none" does not exist`},
		"jwt.jwksSecretRef.key":        {`{jwt: {issuer: id, jwksSecretRef: {name: empty, key: a}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.jwt.jwksSecretRef: Secret "empty" has no key "a"`},
		"oidc.clientSecretRef.name":    {`{oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: none, key: a}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.oidc.clientSecretRef: Secret "none" does not exist`},
		"oidc.clientSecretRef.key":     {`{oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: empty, key: a}}}`, slipwayv1alpha1.ReasonPolicyInvalid, `auth.oidc.clientSecretRef: Secret "empty" has no key "a"`},
	} {
		for _, stanza := range []string{"defaults", "overrides"} {
			rows["spec."+stanza+".auth."+field] = struct{ targets, auth, reason, says string }{`[{kind: HTTPRoute, name: web}]`, row.auth, row.reason, "spec." + stanza + "." + row.says}
		}
	}
	for field, row := range rows {
		t.Run(field, func(t *testing.T) {
			stanza := "defaults"
			if strings.HasPrefix(field, "spec.overrides") {
				stanza = "overrides"
			}
			policy := &slipwayv1alpha1.GatewayPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "asks", UID: "asks"}}
			if err := yaml.UnmarshalStrict(fmt.Appendf(nil, "{targetRefs: %s, %s: {auth: %s}}", row.targets, stanza, row.auth), &policy.Spec); err != nil {
				t.Fatal(err)
			}
			in := read(t, "testdata/enforce/edge.yaml")
			in.GatewayPolicies = []*slipwayv1alpha1.GatewayPolicy{policy}
			in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(name types.NamespacedName) (map[string][]byte, bool) {
				return map[string][]byte{"issuer": []byte("https://id.test")}, name.Name == "empty"
			})
			told := gatewayapi.Build(in).GatewayPolicies[0].Conditions[0]
			if told.Status != metav1.ConditionFalse || told.Reason != row.reason || !strings.Contains(told.Message, row.says) {
				t.Errorf("it is told %s %s: %s", told.Status, told.Reason, told.Message)
			}
		})
	}
}

// Each reference of the kinds of the Gateway API: which condition is False while there is no such object, and what it says.
func TestWhatObjectsOfTheGatewayAPINameAndThereIsNotIsTold(t *testing.T) {
	const parents = `parentRefs: [{name: edge}]`
	for field, test := range map[string]struct{ kind, spec, condition, says string }{
		"HTTPRoute parentRefs[].sectionName":           {"HTTPRoute", `{parentRefs: [{name: edge, sectionName: none}], rules: [{matches: [{}]}]}`, "Accepted", `parentRefs: Gateway "edge" has no listener with the name "none"`},
		"HTTPRoute rules[].backendRefs[]":              {"HTTPRoute", `{` + parents + `, rules: [{matches: [{}], backendRefs: [{name: none, port: 80}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "none" does not exist`},
		"HTTPRoute rules[].backendRefs[].port":         {"HTTPRoute", `{` + parents + `, rules: [{matches: [{}], backendRefs: [{name: app, port: 81}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "app" has no port 81`},
		"HTTPRoute rules[].filters[].requestMirror":    {"HTTPRoute", `{` + parents + `, rules: [{matches: [{}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}]}]}`, "ResolvedRefs", `rules[0].filters[0].requestMirror.backendRef: Service "none" does not exist`},
		"HTTPRoute backendRefs[].filters[] mirror":     {"HTTPRoute", `{` + parents + `, rules: [{matches: [{}], backendRefs: [{name: app, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}]}]}]}`, "ResolvedRefs", `requestMirror.backendRef: Service "none" does not exist`},
		"HTTPRoute rules[].filters[].extensionRef":     {"HTTPRoute", `{` + parents + `, rules: [{matches: [{}], filters: [{type: ExtensionRef, extensionRef: {group: a, kind: B, name: none}}]}]}`, "Accepted", `rules[0].filters[0].type: "ExtensionRef" is not supported`},
		"GRPCRoute rules[].backendRefs[]":              {"GRPCRoute", `{` + parents + `, rules: [{backendRefs: [{name: none, port: 80}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "none" does not exist`},
		"GRPCRoute rules[].filters[].requestMirror":    {"GRPCRoute", `{` + parents + `, rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}]}]}`, "ResolvedRefs", `requestMirror.backendRef: Service "none" does not exist`},
		"TLSRoute rules[].backendRefs[]":               {"TLSRoute", `{` + parents + `, hostnames: [a.test], rules: [{backendRefs: [{name: none, port: 80}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "none" does not exist`},
		"TCPRoute rules[].backendRefs[]":               {"TCPRoute", `{` + parents + `, rules: [{backendRefs: [{name: none, port: 80}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "none" does not exist`},
		"UDPRoute rules[].backendRefs[]":               {"UDPRoute", `{` + parents + `, rules: [{backendRefs: [{name: none, port: 80}]}]}`, "ResolvedRefs", `rules[0].backendRefs[0]: Service "none" does not exist`},
		"Gateway listeners[].tls.certificateRefs[]":    {"Gateway", `{listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}]}`, "ResolvedRefs", `tls.certificateRefs[0]: Secret "none" does not exist`},
		"Gateway tls.backend.clientCertificateRef":     {"Gateway", `{tls: {backend: {clientCertificateRef: {name: none}}}, listeners: [{name: a, port: 80, protocol: HTTP}]}`, "ResolvedRefs", `Secret "none" does not exist`},
		"Gateway tls.frontend caCertificateRefs[]":     {"Gateway", `{tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: none}]}}}}, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: tls}]}}]}`, "ResolvedRefs", `ConfigMap "none" does not exist`},
		"ListenerSet listeners[].tls.certificateRefs":  {"ListenerSet", `{parentRef: {name: edge}, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}]}`, "ResolvedRefs", `tls.certificateRefs[0]: Secret "none" does not exist`},
		"BackendTLSPolicy validation.caCertificates[]": {"BackendTLSPolicy", `{targetRefs: [{group: "", kind: Service, name: app}], validation: {hostname: app, caCertificateRefs: [{group: "", kind: ConfigMap, name: none}]}}`, "ResolvedRefs", `ConfigMap "none" does not exist`},
	} {
		t.Run(field, func(t *testing.T) {
			var told []string
			for _, c := range conditionsWith(t, test.kind, test.spec) {
				told = append(told, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
				if c.Type == test.condition && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, test.says) {
					return
				}
			}
			t.Errorf("it is told:\n%s\nwant %s False: %s", strings.Join(told, "\n"), test.condition, test.says)
		})
	}
}

// conditionsWith are the conditions of an object among others that are as they should be.
func conditionsWith(t *testing.T, kind, spec string) []metav1.Condition {
	t.Helper()
	name := types.NamespacedName{Namespace: "team", Name: "app"}
	of := metav1.ObjectMeta{Namespace: "team", Name: "judged", UID: "judged"}
	into := func(to any) {
		if err := yaml.UnmarshalStrict([]byte(spec), to); err != nil {
			t.Fatal(err)
		}
	}
	same := gatewayv1.NamespacesFromSame
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge", UID: "edge"}}
	if err := yaml.UnmarshalStrict([]byte(`{listeners: [{name: http, port: 80, protocol: HTTP}, {name: tls, port: 8443, protocol: TLS, tls: {mode: Passthrough}}, {name: tcp, port: 81, protocol: TCP}, {name: udp, port: 82, protocol: UDP}]}`), &gateway.Spec); err != nil {
		t.Fatal(err)
	}
	gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &same}}
	in := gatewayapi.Input{
		Gateway: gateway, Services: map[types.NamespacedName]gatewayapi.Service{name: {Ports: map[int32]gatewayapi.Port{80: {}}, UDP: map[int32]gatewayapi.Port{80: {}}}},
		Secrets: map[types.NamespacedName]gatewayapi.Secret{{Namespace: "team", Name: "tls"}: {}},
	}
	user := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "user", UID: "user"}}
	if err := yaml.UnmarshalStrict([]byte(`{parentRefs: [{name: edge}], rules: [{matches: [{}], backendRefs: [{name: app, port: 80}]}]}`), &user.Spec); err != nil {
		t.Fatal(err)
	}
	in.HTTPRoutes = append(in.HTTPRoutes, user)
	switch kind {
	case "Gateway":
		gateway.Spec = gatewayv1.GatewaySpec{}
		into(&gateway.Spec)
	case "HTTPRoute":
		route := &gatewayv1.HTTPRoute{ObjectMeta: of}
		into(&route.Spec)
		in.HTTPRoutes = append(in.HTTPRoutes, route)
	case "GRPCRoute":
		route := &gatewayv1.GRPCRoute{ObjectMeta: of}
		into(&route.Spec)
		in.GRPCRoutes = append(in.GRPCRoutes, route)
	case "TLSRoute":
		route := &gatewayv1.TLSRoute{ObjectMeta: of}
		into(&route.Spec)
		in.TLSRoutes = append(in.TLSRoutes, route)
	case "TCPRoute":
		route := &gatewayv1.TCPRoute{ObjectMeta: of}
		into(&route.Spec)
		in.TCPRoutes = append(in.TCPRoutes, route)
	case "UDPRoute":
		route := &gatewayv1.UDPRoute{ObjectMeta: of}
		into(&route.Spec)
		in.UDPRoutes = append(in.UDPRoutes, route)
	case "ListenerSet":
		set := &gatewayv1.ListenerSet{ObjectMeta: of}
		into(&set.Spec)
		in.ListenerSets = append(in.ListenerSets, set)
	case "BackendTLSPolicy":
		policy := &gatewayv1.BackendTLSPolicy{ObjectMeta: of}
		into(&policy.Spec)
		in.Policies = append(in.Policies, policy)
	}
	return allConditions(gatewayapi.Build(in), kind)
}

// allConditions are those of the objects of a kind that are judged.
func allConditions(g *gatewayapi.Graph, kind string) []metav1.Condition {
	var all []metav1.Condition
	for _, route := range g.Routes {
		for _, parent := range route.Parents {
			if string(route.Kind) == kind && route.Name.Name == "judged" {
				all = append(all, parent.Conditions...)
			}
		}
	}
	for _, l := range g.Listeners {
		if kind == "Gateway" && l.Set == nil || kind == "ListenerSet" && l.Set != nil {
			all = append(all, l.Conditions...)
		}
	}
	for _, policy := range g.Policies {
		all = append(all, policy.Conditions...)
	}
	if kind == "Gateway" {
		all = append(all, g.ResolvedRefs)
	}
	return all
}
