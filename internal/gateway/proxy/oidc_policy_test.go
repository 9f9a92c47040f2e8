package proxy

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// throughPolicies makes the table of a Gateway whose policies log browsers in.
func throughPolicies(t *testing.T, p *provider, routes, policies, backend string) *table.Table {
	t.Helper()
	return tableOfGateway(t, p.secrets()["login"], routes, policies, backend)
}

// tableOfGateway makes the table of a Gateway with policies, which find this in every Secret. Its routes are in the namespaces team and
// other, each with a backend app.
func tableOfGateway(t testing.TB, secret map[string][]byte, routes, policies, backend string) *table.Table {
	t.Helper()
	in := gatewayapi.Input{
		Gateway:  &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge"}},
		Services: map[types.NamespacedName]gatewayapi.Service{}, Unknown: map[types.UID][]string{},
	}
	all := gatewayv1.NamespacesFromAll
	in.Gateway.Spec.Listeners = []gatewayv1.Listener{{
		Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
	}}
	for _, err := range []error{yaml.UnmarshalStrict([]byte(routes), &in.HTTPRoutes), yaml.UnmarshalStrict([]byte(policies), &in.GatewayPolicies)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	services := map[model.ServiceName]model.Service{}
	for _, namespace := range []string{"team", "other"} {
		in.Services[types.NamespacedName{Namespace: namespace, Name: "app"}] = gatewayapi.Service{Ports: map[int32]gatewayapi.Port{80: {}}}
		services[model.ServiceName{Namespace: namespace, Name: "app"}] = model.Service{Ports: map[int32]model.ServicePort{80: {Endpoints: []string{backend}}}}
	}
	in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(types.NamespacedName) (map[string][]byte, bool) { return secret, true })
	compiled, problems := table.Compile(gatewayapi.Build(in).Table(services))
	if len(problems) > 0 {
		t.Logf("problems: %+v", problems)
	}
	return compiled
}

// logInPolicy is a policy in a namespace, for a route there.
func logInPolicy(p *provider, namespace, kind, name string) string {
	return `
- metadata: {namespace: ` + namespace + `, name: ` + name + `, uid: ` + namespace + name + `}
  spec:
    targetRefs: [{kind: ` + kind + `, name: ` + name + `}]
    defaults: {auth: {oidc: {issuer: "` + p.URL + `", clientID: shop, clientSecretRef: {name: login, key: secret}, claimsToHeaders: [{claim: sub, header: X-User}]}}}
`
}

// logInRoute is a route in a namespace.
func logInRoute(namespace, name, path string) string {
	return `
- metadata: {namespace: ` + namespace + `, name: ` + name + `, uid: ` + namespace + name + `}
  spec:
    parentRefs: [{namespace: infra, name: edge}]
    rules: [{matches: [{path: {type: PathPrefix, value: ` + path + `}}], backendRefs: [{name: app, port: 80}]}]
`
}

func TestAGatewayPolicyLogsBrowsersIn(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	g := startServer(t, Options{Identity: "Gateway infra/edge"}, ServerOptions{HTTPPort: 80}, throughPolicies(t, p,
		logInRoute("team", "shop", "/")+logInRoute("team", "api", "/api")+logInRoute("other", "half", "/half"),
		logInPolicy(p, "team", "HTTPRoute", "shop")+logInPolicy(p, "team", "HTTPRoute", "api")+logInPolicy(p, "other", "HTTPRoute", "half"), backend))
	alice := newPerson(t, g)
	page := alice.open("/orders?page=2", "X-User", "mallory")
	want(t, "status", page.StatusCode, http.StatusOK)
	want(t, "page", page.Request.URL.RequestURI(), "/orders?page=2")
	got := received(t, requests)
	want(t, "user", join(got.Header["X-User"]), "alice")
	want(t, "cookies for the backend", join(got.Header["Cookie"]), "")
	want(t, "status of another route of the namespace", alice.open("/api", "Accept", "*/*").StatusCode, http.StatusOK)
	received(t, requests)
	want(t, "status where no log-in could end", alice.open("/half").StatusCode, http.StatusInternalServerError)
	none(t, "a request that nobody let in", requests)
}

func TestAPolicyOfAnotherNamespaceReadsNoSession(t *testing.T) {
	p := newProvider(t)
	backend, requests := recording(t)
	login := func(namespace string) *table.Table {
		return throughPolicies(t, p, logInRoute(namespace, "shop", "/"), logInPolicy(p, namespace, "HTTPRoute", "shop"), backend)
	}
	g := startServer(t, Options{Identity: "Gateway infra/edge"}, ServerOptions{HTTPPort: 80}, login("team"))
	alice := newPerson(t, g)
	want(t, "status", alice.open("/").StatusCode, http.StatusOK)
	received(t, requests)
	g.handler.Set(Config{Table: login("other")})
	want(t, "status by a policy of another namespace", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
	g.handler.Set(Config{Table: login("team")})
	want(t, "status by the policy", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
}

// The policy of a Gateway holds for routes of all namespaces, which then share sessions.
func TestAPolicyOfTheGatewayLogsBrowsersInEverywhere(t *testing.T) {
	p := newProvider(t)
	backend, _ := recording(t)
	g := startServer(t, Options{Identity: "Gateway infra/edge"}, ServerOptions{HTTPPort: 80}, throughPolicies(t, p,
		logInRoute("team", "shop", "/")+logInRoute("other", "half", "/half"), logInPolicy(p, "infra", "Gateway", "edge"), backend))
	alice := newPerson(t, g)
	want(t, "status", alice.open("/half").StatusCode, http.StatusOK)
	want(t, "status of a route of another namespace", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
	want(t, "status of a script without a session", newPerson(t, g).open("/half", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
}
