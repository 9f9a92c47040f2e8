//go:build apitest

package gateway

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// chartRights gives the pods the Role of the chart in a namespace. Somebody of the site is its subject.
func (c *site) chartRights(t *testing.T, namespace string) {
	t.Helper()
	raw, err := os.ReadFile("../../test/chart/testdata/golden/limited.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{}
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		if strings.Contains(document, "\nkind: Role\n") && strings.Contains(document, "\n  name: "+desired.LimitedRightsName+"\n") {
			if err := yaml.UnmarshalStrict([]byte(document), role); err != nil {
				t.Fatal(err)
			}
		}
	}
	role.Namespace = namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.namespace, Name: "edge"}},
	}
	if err := env.Client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// With the rights that the chart gives in two namespaces it serves what is there, and asks for nothing elsewhere.
func TestAGatewayOfSomeNamespacesNeedsNoRightElsewhere(t *testing.T) {
	installed := newSite(t)
	c := &site{newCluster(t)}
	other, elsewhere := installed.elsewhere(t), installed.elsewhere(t)
	for _, namespace := range []string{c.namespace, other.namespace} {
		c.chartRights(t, namespace)
	}
	here, there, far := newBackend(t, "here"), newBackend(t, "there"), newBackend(t, "far")
	c.serve("app", here)
	other.serve("app", there)
	elsewhere.serve("app", far)
	port := environment.FreePort(t)
	selector := func(label string) string {
		return `, hostname: ` + label + `.example.com, allowedRoutes: {namespaces: {from: Selector, selector: {matchExpressions: [{key: ` + label + `, operator: DoesNotExist}]}}}`
	}
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, ", allowedRoutes: {namespaces: {from: All}}"), httpListener("labels", port, selector("untrusted"))))
	grant := `{from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: ` + c.namespace + `}], to: [{group: "", kind: Service}]}`
	other.put("ReferenceGrant", "grant", grant)
	elsewhere.put("ReferenceGrant", "grant", grant)
	backend := func(in string) string {
		return `rules: [{backendRefs: [{name: app, namespace: ` + in + `, port: 80}]}]`
	}
	var routes []string
	for name, in := range map[string]string{"here": c.namespace, "there": other.namespace, "far": elsewhere.namespace} {
		routes = append(routes, routeDigest(c.put("HTTPRoute", name, `{parentRefs: [{name: edge}], hostnames: [`+name+`], `+backend(in)+`}`)))
	}
	parent := `{parentRefs: [{name: edge, namespace: ` + c.namespace + `}], hostnames: `
	routes = append(routes, routeDigest(other.put("HTTPRoute", "theirs", parent+`[theirs], `+backend(other.namespace)+`}`)))
	elsewhere.put("HTTPRoute", "lost", parent+`[lost, untrusted.example.com], `+backend(elsewhere.namespace)+`}`)
	r := c.runGateway(func(o *Options) { o.Namespaces = []string{c.namespace, other.namespace} })
	r.says(routes, "http")
	for host, want := range map[string]string{"here": "here", "there": "there", "theirs": "there", "far": "500", "lost": "404", "untrusted.example.com": "404"} {
		r.answersOn(port, host, "/", want)
	}
	if log := r.log.String(); strings.Contains(strings.ToLower(log), "forbidden") {
		t.Error("something was forbidden")
	}
}
