package gateway

import (
	"bytes"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// Clients keep their endpoints, and counts go on, while the secrets stay. One that somebody has broken is made anew.
func TestTheSecretsThatPodsHaveInCommonStay(t *testing.T) {
	kept := func(current map[string][]byte, keys ...string) map[string][]byte {
		data := map[string][]byte{}
		if err := keepShared(keys, data, &corev1.Secret{Data: current}); err != nil {
			t.Fatal(err)
		}
		if len(data) != len(keys) {
			t.Errorf("of %q it keeps %q", keys, data)
		}
		return data
	}
	both := []string{copied.SessionsKey, copied.ReplicasKey}
	first, other := kept(nil, both...), kept(nil, both...)
	for _, key := range both {
		if len(first[key]) != copied.SecretBytes || bytes.Equal(first[key], other[key]) {
			t.Errorf("%s: two Gateways have the secret %x", key, first[key])
		}
		if again := kept(first, key); !bytes.Equal(first[key], again[key]) {
			t.Errorf("%s: it does not stay", key)
		}
		if again := kept(map[string][]byte{key: []byte("short")}, key); len(again[key]) != copied.SecretBytes {
			t.Errorf("%s: of a short one it makes %q", key, again[key])
		}
	}
	if bytes.Equal(first[copied.SessionsKey], first[copied.ReplicasKey]) {
		t.Error("sessions and replicas have the same secret")
	}
	kept(first) // nothing is kept that nobody wants
}

// sharingScope is a Gateway with two routes. One has sessions of its own.
func sharingScope(t *testing.T, policies string) *scope {
	t.Helper()
	in := gatewayapi.Input{
		Gateway: &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge", UID: "edge"}, Spec: gatewayv1.GatewaySpec{
			Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}},
		Services: map[types.NamespacedName]gatewayapi.Service{{Namespace: "infra", Name: "app"}: {Ports: map[int32]gatewayapi.Port{80: {}}}},
	}
	const routes = `
- metadata: {namespace: infra, name: plain, uid: plain}
  spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, port: 80}]}]}
- metadata: {namespace: infra, name: sticky, uid: sticky}
  spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: app, port: 80}], sessionPersistence: {}}]}
`
	for _, err := range []error{yaml.UnmarshalStrict([]byte(routes), &in.HTTPRoutes), yaml.UnmarshalStrict([]byte(policies), &in.GatewayPolicies)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(types.NamespacedName) (map[string][]byte, bool) {
		return map[string][]byte{"issuer": []byte("https://id.test"), "key": []byte("0123456789abcdef")}, true
	})
	s := &scope{gateway: in.Gateway, input: in, graph: gatewayapi.Build(in)}
	doc := document.Document{UID: "edge", View: &document.View{Current: true}}
	for _, route := range s.graph.Routes {
		doc.Routes = append(doc.Routes, document.RouteDigest(route.UID, route.Generation))
	}
	for _, policy := range s.graph.GatewayPolicies {
		doc.Routes = append(doc.Routes, s.policyDigest(policy))
	}
	for _, name := range []string{"edge-a", "edge-b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
		said := doc
		s.served.replicas = append(s.served.replicas, judge("edge", pod, replica.Answer{State: replica.Answering, Document: &said}))
		doc.Problems = []document.Problem{ // of the second
			{Route: -1, Reason: slipwayv1alpha1.ReasonLimitNotShared, Message: "nobody answers"},
			{Route: -1, Reason: slipwayv1alpha1.ReasonAffinityNotShared, Message: "there is no secret"},
		}
	}
	return s
}

const (
	limitsOfAll = `
- metadata: {namespace: infra, name: limits, uid: limits}
  spec: {targetRefs: [{kind: HTTPRoute, name: plain}], defaults: {rateLimit: {requests: 10, period: 1s, count: Gateway}}}
`
	sessionsOfAll = `
- metadata: {namespace: infra, name: sessions, uid: sessions}
  spec: {targetRefs: [{kind: Gateway, name: edge}], defaults: {sessionAffinity: {cookie: {}}}}
`
	limitsOfEach = `
- metadata: {namespace: infra, name: others, uid: others}
  spec: {targetRefs: [{kind: Gateway, name: edge}], defaults: {rateLimit: {requests: 10, period: 1s}}}
`
)

// What pods do not share is reported where it was asked for. A route that is served as it is written stays live, whatever its policies lack.
func TestWhatPodsDoNotShareIsToldWhereItWasAskedFor(t *testing.T) {
	s := sharingScope(t, limitsOfAll+sessionsOfAll+limitsOfEach)
	want := map[string]string{
		"limits": "LimitNotShared: pod \"edge-b\": nobody answers", "sessions": "AffinityNotShared: pod \"edge-b\": there is no secret", "others": "Live: every pod that is ready uses this generation of the policy",
		"plain": "Live: every pod that is ready serves this generation of the route", "sticky": "AffinityNotShared: pod \"edge-b\": there is no secret",
	}
	got := map[string]string{}
	for _, policy := range s.graph.GatewayPolicies {
		lack := s.policyLack(policy)
		if passing := lack != nil && lack.passing; passing != (policy.Name.Name == "sessions") { // the secret may be about to come
			t.Errorf("what is said of policy %q passes: %v", policy.Name.Name, passing)
		}
		said := livePolicy(policy, lack)
		got[policy.Name.Name] = said.Reason + ": " + said.Message
	}
	for _, route := range s.graph.Routes {
		said := s.live(route, route.Parents[0])
		got[route.Name.Name] = said.Reason + ": " + said.Message
	}
	for name, says := range want {
		if got[name] != says {
			t.Errorf("%s says %q, want %q", name, got[name], says)
		}
	}
	if len(got) != len(want) {
		t.Errorf("it says %q", got)
	}
}

// A name on the network cannot be looked up: the pods try, and what fails is reported of the policy, with the address.
func TestWhatCannotBeFetchedForAPolicyIsToldOfIt(t *testing.T) {
	const keys, provider = "auth.jwt.jwksURL: no public keys could be fetched from https://id.test/keys yet",
		"auth.oidc.issuer: what the provider publishes at https://id.test/.well-known/openid-configuration could not be fetched or used yet"
	for field, test := range map[string]struct{ auth, reason, message string }{
		"jwt.jwksURL": {`{jwt: {issuer: id, jwksURL: "https://id.test/keys"}}`, slipwayv1alpha1.ReasonKeysNotFetched, keys},
		"oidc.issuer": {`{oidc: {issuer: "https://id.test", clientID: a, clientSecretRef: {name: client, key: key}}}`, slipwayv1alpha1.ReasonProviderNotFetched, provider},
	} {
		for _, stanza := range []string{"defaults", "overrides"} {
			t.Run(stanza+" "+field, func(t *testing.T) {
				s := sharingScope(t, `
- metadata: {namespace: infra, name: asks, uid: asks}
  spec: {targetRefs: [{kind: HTTPRoute, name: plain}], `+stanza+`: {auth: `+test.auth+`}}
`)
				policy := s.graph.GatewayPolicies[0]
				if lack := s.policyLack(policy); lack != nil || !policy.Served {
					t.Fatalf("as long as all is fetched: %+v, served %v (%+v)", lack, policy.Served, policy.Conditions)
				}
				second := &s.served.replicas[1]
				delete(second.routes, s.policyDigest(policy))
				second.hear([]document.Problem{{Route: -1, Name: "infra/asks", Reason: test.reason, Message: test.message}})
				said := livePolicy(policy, s.policyLack(policy))
				if want := `pod "edge-b": ` + test.message; said.Status != metav1.ConditionFalse || said.Reason != test.reason || said.Message != want {
					t.Errorf("Live is %s %s: %s, want %s", said.Status, said.Reason, said.Message, want)
				}
				// What the pod says of an earlier address is no news of the present one.
				second.hear([]document.Problem{{Route: -1, Name: "infra/asks", Reason: test.reason, Message: "from https://earlier.test"}})
				if said := livePolicy(policy, s.policyLack(policy)); said.Reason != ReasonReplicaBehind {
					t.Errorf("of an earlier address it says %s: %s", said.Reason, said.Message)
				}
			})
		}
	}
}

func TestASecretIsKeptForWhatWantsIt(t *testing.T) {
	const override = `
- metadata: {namespace: infra, name: override, uid: override}
  spec: {targetRefs: [{kind: Gateway, name: edge}], overrides: {rateLimit: {requests: 10, period: 1s}, sessionAffinity: {none: {}}}}
`
	for name, test := range map[string]struct {
		policies string
		want     []string
	}{
		"sessions of a route":      {"[]", []string{copied.SessionsKey}},
		"and a limit":              {limitsOfAll, []string{copied.SessionsKey, copied.ReplicasKey}},
		"a limit of each pod":      {limitsOfEach, []string{copied.SessionsKey}},
		"overrides take both away": {limitsOfAll + override, nil},
	} {
		if got := sharingScope(t, test.policies).sharedSecrets(); !slices.Equal(got, test.want) {
			t.Errorf("%s: secrets %q, want %q", name, got, test.want)
		}
	}
}
