//go:build apitest

package gateway

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func openGatewaySpec(from string, listeners ...string) string {
	return fmt.Sprintf("{gatewayClassName: slipway, allowedListeners: {namespaces: {from: %s}}, listeners: [%s]}", from, strings.Join(listeners, ", "))
}

func (c *site) setSpec(listeners ...string) string {
	return fmt.Sprintf("{parentRef: {name: edge, namespace: %s}, listeners: [%s]}", c.namespace, strings.Join(listeners, ", "))
}

// A ListenerSet of another namespace adds listeners with routes of its own. It takes nothing from the Gateway, and it goes when
// it is not allowed any more.
func TestAListenerSetAddsListenersAndTakesNone(t *testing.T) {
	c := newSite(t)
	other := c.elsewhere(t)
	own, theirs := newBackend(t, "own"), newBackend(t, "theirs")
	c.serve("own", own)
	other.serve("theirs", theirs)
	port, more := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", openGatewaySpec("All", httpListener("http", port, ", hostname: own.example.com, allowedRoutes: {namespaces: {from: All}}")))
	ofGateway := c.put("HTTPRoute", "own", `{parentRefs: [{name: edge}], rules: [{`+to("own")+`}]}`)
	r := c.runGateway()
	r.says([]string{routeDigest(ofGateway)}, "http")

	key := func(name string) string { return other.namespace + "/team/" + name }
	other.put("ListenerSet", "team", c.setSpec(
		httpListener("team", port, ", hostname: team.example.com"), httpListener("taken", port, ", hostname: own.example.com"), httpListener("more", more, ""),
	))
	r.says([]string{routeDigest(ofGateway)}, "http", key("team"), key("more"))
	ofSet := other.put("HTTPRoute", "theirs", `{parentRefs: [{kind: ListenerSet, name: team}], rules: [{`+to("theirs")+`}]}`)
	r.says([]string{routeDigest(ofGateway), routeDigest(ofSet)}, "http", key("team"), key("more"))
	for _, want := range []struct {
		port         int
		host, answer string
	}{
		{port, "own.example.com", "own"},
		{port, "team.example.com", "theirs"},
		{port, "else.example.com", "404"},
		{more, "own.example.com", "theirs"},
	} {
		if got := gets(want.port, want.host, "/"); got != want.answer {
			t.Errorf("%s on port %d: got %q, want %q", want.host, want.port, got, want.answer)
		}
	}

	// A route leaves the set, and a set the Gateway.
	ofSet = other.put("HTTPRoute", "theirs", `{parentRefs: [{kind: ListenerSet, name: team, sectionName: team}], rules: [{`+to("theirs")+`}]}`)
	r.answersOn(more, "any.example.com", "/", "404")
	r.says([]string{routeDigest(ofGateway), routeDigest(ofSet)}, "http", key("team"), key("more"))
	c.put("Gateway", "edge", openGatewaySpec("Same", httpListener("http", port, ", hostname: own.example.com, allowedRoutes: {namespaces: {from: All}}")))
	r.says([]string{routeDigest(ofGateway)}, "http")
	r.answersOn(port, "team.example.com", "/", "404")
	if got := gets(more, "team.example.com", "/"); !strings.Contains(got, "refused") {
		t.Errorf("the port of the set: got %q", got)
	}
}

// A set shows the certificates of its own namespace, and others that it is granted.
func TestTheCertificatesOfAListenerSet(t *testing.T) {
	c := newSite(t, "admin", "edge-certificates")
	other := c.elsewhere(t)
	admin, theirs := newCertificate(t, "admin.example.com"), newCertificate(t, "team.example.com")
	c.secret("admin", admin.data)
	copies := map[string][]byte{}
	name := types.NamespacedName{Namespace: other.namespace, Name: "theirs"}
	copied.Put(copies, name, copied.Certificate{Certificate: theirs.data[corev1.TLSCertKey], PrivateKey: theirs.data[corev1.TLSPrivateKeyKey], Version: "77"})
	c.secret("edge-certificates", copies)
	port, secure := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", openGatewaySpec("All", httpListener("http", port, "")))
	https := func(name, host, ref string) string {
		return fmt.Sprintf("{name: %s, port: %d, protocol: HTTPS, hostname: %s, tls: {certificateRefs: [{%s}]}}", name, secure, host, ref)
	}
	other.put("ListenerSet", "team", c.setSpec(
		https("theirs", "team.example.com", "name: theirs"), https("admin", "admin.example.com", "name: admin, namespace: "+c.namespace),
	))
	r := c.runGateway()
	r.says(nil, "http", other.namespace+"/team/theirs")
	if got := serialOn(secure, "team.example.com"); got != theirs.serial {
		t.Errorf("got certificate %s, want %s", got, theirs.serial)
	}
	if got := serialOn(secure, "admin.example.com"); got == admin.serial {
		t.Error("without a grant the set shows a certificate of the Gateway's namespace")
	}
	// A grant to Gateways is none to ListenerSets.
	c.put("ReferenceGrant", "grant", `{from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: `+other.namespace+`}], to: [{group: "", kind: Secret}]}`)
	c.put("Gateway", "edge", openGatewaySpec("All", httpListener("http", port, ""), httpListener("next", environment.FreePort(t), "")))
	r.says(nil, "http", "next", other.namespace+"/team/theirs")
	c.put("ReferenceGrant", "grant", `{from: [{group: gateway.networking.k8s.io, kind: ListenerSet, namespace: `+other.namespace+`}], to: [{group: "", kind: Secret}]}`)
	r.says(nil, "http", "next", other.namespace+"/team/theirs", other.namespace+"/team/admin")
	if got := serialOn(secure, "admin.example.com"); got != admin.serial {
		t.Errorf("got certificate %s, want %s", got, admin.serial)
	}
	c.delete(c.object("ReferenceGrant", "grant"))
	r.says(nil, "http", "next", other.namespace+"/team/theirs")
}
