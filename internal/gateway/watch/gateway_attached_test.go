package watch

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// attach puts a GatewayPolicy into its store, and looks.
func (f *gatewayFixture) attach(namespace, name string, generation int64, spec string) {
	f.t.Helper()
	f.must(f.attached.watched[""].store.Update(gatewayAPIObject(f.t, namespace, name, generation, spec)))
	f.look(f.t.Context())
}

// only is the only route of the table.
func (f *gatewayFixture) only() *table.Route {
	f.t.Helper()
	routes := f.applied[len(f.applied)-1].Proxy.Table.Routes
	if len(routes) != 1 {
		f.t.Fatalf("%d routes", len(routes))
	}
	return routes[0]
}

func hashOf(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return []byte("sha256:" + hex.EncodeToString(sum[:]))
}

const keysPolicy = `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {auth: {apiKey: {secretRef: {name: keys}}}}}`

// Nothing is served before the policies are known: they may restrict it.
func TestNothingIsServedBeforePoliciesAreKnown(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	for key := range f.everyone {
		for _, of := range f.routesOfKinds() {
			f.must(of.watched[key].store.Replace(nil, ""))
		}
		f.must(f.httpRoutes.watched[key].store.Replace([]any{routeTo(t, "a", "one", 1)}, ""))
		f.must(f.grants.watched[key].store.Replace(nil, ""))
		f.must(f.policies.watched[key].store.Replace(nil, ""))
		f.must(f.sets.watched[key].store.Replace(nil, ""))
	}
	f.look(t.Context())
	f.must(f.attached.watched[""].store.Replace([]any{gatewayAPIObject(t, "a", "p", 1, keysPolicy)}, ""))
	if len(f.applied) != 0 {
		t.Error("it is served")
	}
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	if len(f.applied) != 0 {
		t.Error("it is served before the copies were read")
	}
	f.must(f.secrets.watched["edge-certificates"].store.Replace(nil, ""))
	f.look(t.Context())
	if f.only().Unavailable == nil {
		t.Error("without its Secret the policy lets somebody in")
	}
}

func TestAPolicyHoldsWithItsSecret(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	if f.only().Auth != nil {
		t.Fatal("without a policy somebody has to prove who it is")
	}
	f.attach("a", "p", 1, keysPolicy)
	name := types.NamespacedName{Namespace: "a", Name: "keys"}
	copies := func(version string, data map[string][]byte) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates", ResourceVersion: "9"}, Data: map[string][]byte{}}
		if data != nil {
			f.must(copied.PutCredentials(secret.Data, name, copied.Credentials{Data: data, Version: version}))
		}
		f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{secret}, ""))
		f.look(t.Context())
	}
	refused := func(when string) {
		t.Helper()
		if f.only().Unavailable == nil {
			t.Errorf("%s: it is served", when)
		}
		if got := f.board.Current().Routes; len(got) != 1 {
			t.Errorf("%s: it says that it serves %q", when, got)
		}
	}
	copies("1", nil)
	refused("without the copy")
	copies("1", map[string][]byte{"alice": hashOf("alice")})
	if got := f.only(); got.Unavailable != nil || len(got.Auth.APIKey.Clients) != 1 {
		t.Fatalf("with the copy: %+v", got)
	}
	first := f.board.Current().Routes
	copies("2", map[string][]byte{"alice": hashOf("other")})
	if got := f.board.Current().Routes; len(first) != 2 || len(got) != 2 || slices.Equal(first, got) {
		t.Errorf("with another version of the Secret it says %q, before %q", got, first)
	}
	f.attach("a", "p", 2, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {oidc: {}}}`)
	refused("with a field that nobody knows")
	f.attach("a", "p", 3, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: []}`)
	refused("with a spec of another form")
	if problems := f.board.Current().Problems; len(problems) == 0 || problems[0].Field != "GatewayPolicy a/p" {
		t.Errorf("says %+v", problems)
	}
	f.must(f.attached.watched[""].store.Delete(gatewayAPIObject(t, "a", "p", 3, keysPolicy)))
	f.look(t.Context())
	if f.only().Unavailable != nil {
		t.Error("it is refused without the policy")
	}
}

func TestAGatewayPolicyForOthersWakesNobody(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	for len(f.woken) > 0 {
		<-f.woken
	}
	f.must(f.attached.watched[""].store.Update(gatewayAPIObject(t, "b", "p", 1, keysPolicy)))
	f.must(f.attached.watched[""].store.Update(gatewayAPIObject(t, "a", "q", 1, `{targetRefs: [{kind: Gateway, name: edge}], defaults: {maxBodyBytes: 1}}`)))
	if len(f.woken) > 0 {
		t.Error("a policy for a route of another namespace, or a Gateway of another one, is looked at")
	}
	f.must(f.attached.watched[""].store.Update(gatewayAPIObject(t, "a", "p", 1, keysPolicy)))
	if len(f.woken) == 0 {
		t.Error("a policy for a route of the Gateway is not looked at")
	}
}

// A policy that lets nobody in for want of public keys is not said to be served.
func TestAPolicyWithoutPublicKeysIsAProblem(t *testing.T) {
	f := newGatewayFixture(t)
	missing := map[string]bool{"https://id.example.com/keys": true}
	f.options.MissingKeys = func() map[string]bool { return missing }
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.attach("a", "p", 1, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {auth: {jwt: {issuer: a, jwksURL: "https://id.example.com/keys"}}}}`)
	if got := f.board.Current(); len(got.Routes) != 1 || len(got.Problems) != 1 || got.Problems[0].Reason != "KeysNotFetched" {
		t.Errorf("without keys it says %+v", got)
	}
	missing = nil
	f.look(t.Context())
	if got := f.board.Current(); len(got.Routes) != 2 || len(got.Problems) != 0 {
		t.Errorf("with keys it says %+v", got)
	}
}

// A policy by which nobody can log in, because what the provider publishes is not known, is not said to be served.
func TestAPolicyWithoutItsProviderIsAProblem(t *testing.T) {
	f := newGatewayFixture(t)
	missing := map[string]bool{"https://id.example.com/.well-known/openid-configuration": true}
	f.options.MissingKeys = func() map[string]bool { return missing }
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.attach("a", "p", 1, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {auth: {oidc: {issuer: "https://id.example.com", clientID: shop, clientSecretRef: {name: login, key: secret}}}}}`)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates", ResourceVersion: "9"}, Data: map[string][]byte{}}
	f.must(copied.PutCredentials(secret.Data, types.NamespacedName{Namespace: "a", Name: "login"}, copied.Credentials{
		Data: map[string][]byte{"issuer": []byte("https://id.example.com"), "secret": []byte("0123456789abcdef")}, Version: "1",
	}))
	f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{secret}, ""))
	f.look(t.Context())
	if got := f.only(); got.Unavailable != nil || got.Auth.OIDC.ClientID != "shop" {
		t.Fatalf("with the copy: %+v", got)
	}
	if got := f.board.Current(); len(got.Routes) != 1 || len(got.Problems) != 1 || got.Problems[0].Reason != "ProviderNotFetched" {
		t.Errorf("without its provider it says %+v", got)
	}
	missing = nil
	f.look(t.Context())
	if got := f.board.Current(); len(got.Routes) != 2 || len(got.Problems) != 0 {
		t.Errorf("with it it says %+v", got)
	}
}

// servicesOf puts Services with an endpoint each into their store.
func (f *gatewayFixture) servicesOf(namespace string, addresses map[string]string) {
	f.t.Helper()
	var services, slices []any
	for name, address := range addresses {
		service, endpoints := serviceObject(name, web), sliceObject(name, name+"-1", address)
		service.Namespace, endpoints.Namespace = namespace, namespace
		services, slices = append(services, service), append(slices, endpoints)
	}
	f.must(f.services.watched[namespace].store.Replace(services, ""))
	f.must(f.slices.watched[namespace].store.Replace(slices, ""))
	f.look(f.t.Context())
}

// A policy has a Service of its own namespace asked, and never one of the same name beside the gateway or a route.
func TestAPolicyAsksAServiceOfItsNamespace(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.look(t.Context())
	f.attach("a", "p", 1, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {auth: {external: {backendService: {name: auth, port: 80}}}}}`)
	endpoints := func() []string {
		asked := f.only().Auth.External.Backend
		if asked == nil || asked.Namespace != "a" || asked.Service != "auth" {
			t.Fatalf("asked is %+v", asked)
		}
		return asked.Endpoints
	}
	if got := endpoints(); len(got) != 0 {
		t.Errorf("without the Service, %q are asked", got)
	}
	f.servicesOf("a", map[string]string{"app": "10.0.0.1", "auth": "10.0.0.2"})
	if got := endpoints(); !slices.Equal(got, []string{"10.0.0.2:8080"}) {
		t.Errorf("with the Service, %q are asked", got)
	}
	f.servicesOf("a", map[string]string{"app": "10.0.0.1", "auth": "10.0.0.3"})
	if got := endpoints(); !slices.Equal(got, []string{"10.0.0.3:8080"}) {
		t.Errorf("with another endpoint, %q are asked", got)
	}
	f.attach("infra", "q", 1, `{targetRefs: [{kind: Gateway, name: edge}], overrides: {auth: {external: {backendService: {name: auth, port: 80}}}}}`)
	f.servicesOf("infra", map[string]string{"auth": "10.0.0.4"})
	if asked := f.only().Auth.External.Backend; asked.Namespace != "infra" || !slices.Equal(asked.Endpoints, []string{"10.0.0.4:8080"}) {
		t.Errorf("by the policy of the Gateway, %+v is asked", asked)
	}
	f.servicesOf("infra", nil)
	if asked := f.only().Auth.External.Backend; asked.Namespace != "infra" || len(asked.Endpoints) != 0 {
		t.Errorf("without its Service, %+v is asked", asked)
	}
}
