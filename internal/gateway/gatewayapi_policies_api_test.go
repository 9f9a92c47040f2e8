//go:build apitest

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// keyHash is how a Secret has an API key.
func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return []byte("sha256:" + hex.EncodeToString(sum[:]))
}

// asks sends a request with some fields and a body, and returns the status and the header of the answer.
func asks(port int, method, host, path, body string, fields ...string) (int, http.Header) {
	request, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Host = host
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header
}

// becomes waits until a request with some fields gets a status.
func becomes(t *testing.T, want, port int, host, path string, fields ...string) {
	t.Helper()
	environment.Eventually(t, func() error {
		if got, _ := asks(port, http.MethodGet, host, path, "", fields...); got != want {
			return fmt.Errorf("%s%s with %q: got %d, want %d", host, path, fields, got, want)
		}
		return nil
	})
}

func policyDigest(object *unstructured.Unstructured, secrets ...string) string {
	return document.PolicyDigest(object.GetUID(), object.GetGeneration(), secrets)
}

func (r *running) usesPolicy(digest string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		if got := r.revision(); !slices.Contains(got.Routes, digest) {
			return fmt.Errorf("the policy is not among %q: %+v", got.Routes, got.Problems)
		}
		return nil
	})
}

func TestPoliciesHoldForWhatTheyName(t *testing.T) {
	c := newSite(t, "keys")
	c.serve("app", newBackend(t, "app"))
	port, second := environment.FreePort(t), environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, ""), httpListener("admin", second, "")))
	c.put("HTTPRoute", "open", `{parentRefs: [{name: edge}], hostnames: [open.example.com], rules: [{`+to("app")+`}]}`)
	c.put("HTTPRoute", "shop", `{parentRefs: [{name: edge}], hostnames: [shop.example.com], rules: [
		{name: all, `+to("app")+`}, {name: few, matches: [{path: {value: /few}}], `+to("app")+`}]}`)
	c.secret("keys", map[string][]byte{"alice": keyHash("open sesame")})
	c.put("GatewayPolicy", "keys", `{targetRefs: [{kind: HTTPRoute, name: shop}], defaults: {auth: {apiKey: {secretRef: {name: keys}}}, cors: {allowOrigins: ["https://pages.example.com"]}}}`)
	few := c.put("GatewayPolicy", "few", `{targetRefs: [{kind: HTTPRoute, name: shop, sectionName: few}], defaults: {rateLimit: {requests: 1, period: 1h}}}`)
	c.put("GatewayPolicy", "body", `{targetRefs: [{kind: Gateway, name: edge, sectionName: admin}], overrides: {maxBodyBytes: 4}}`)
	r := c.runGateway()
	r.usesPolicy(policyDigest(few))
	key := []string{"X-Api-Key", "open sesame"}

	becomes(t, 200, port, "open.example.com", "/")
	becomes(t, 401, port, "shop.example.com", "/")
	becomes(t, 401, port, "shop.example.com", "/", "X-Api-Key", "wrong")
	becomes(t, 200, port, "shop.example.com", "/", key...)
	becomes(t, 200, port, "shop.example.com", "/few", key...)
	if got, _ := asks(port, http.MethodGet, "shop.example.com", "/few", "", key...); got != 429 {
		t.Errorf("the second request for an hour got %d", got)
	}
	for _, test := range []struct{ port, want int }{{port, 200}, {second, 413}} {
		if got, _ := asks(test.port, http.MethodPost, "open.example.com", "/", "five5"); got != test.want {
			t.Errorf("a body of 5 bytes on port %d got %d, want %d", test.port, got, test.want)
		}
	}
	status, header := asks(port, http.MethodOptions, "shop.example.com", "/", "", "Origin", "https://pages.example.com", "Access-Control-Request-Method", "POST")
	if status != 204 || header.Get("Access-Control-Allow-Origin") != "https://pages.example.com" {
		t.Errorf("a preflight request got %d %v", status, header)
	}

	c.put("GatewayPolicy", "addresses", `{targetRefs: [{kind: Gateway, name: edge, sectionName: admin}], overrides: {clientAddresses: {deny: [127.0.0.0/8]}}}`)
	becomes(t, 403, second, "open.example.com", "/")
	becomes(t, 200, port, "open.example.com", "/")

	// A key that is taken away, a Secret that is deleted, a policy that changes, and one that goes.
	c.secret("keys", map[string][]byte{"alice": keyHash("another")})
	becomes(t, 401, port, "shop.example.com", "/", key...)
	becomes(t, 200, port, "shop.example.com", "/", "X-Api-Key", "another")
	c.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}})
	becomes(t, 500, port, "shop.example.com", "/", "X-Api-Key", "another")
	becomes(t, 200, port, "open.example.com", "/")
	c.put("GatewayPolicy", "keys", `{targetRefs: [{kind: HTTPRoute, name: open}], defaults: {auth: {apiKey: {secretRef: {name: keys}}}}}`)
	becomes(t, 500, port, "open.example.com", "/")
	becomes(t, 200, port, "shop.example.com", "/")
	c.delete(c.object("GatewayPolicy", "keys"))
	becomes(t, 200, port, "open.example.com", "/")
}

// The owner of a Gateway decides what the owner of a route cannot undo, and the Secrets of a route are read as copies.
func TestPoliciesOfOtherNamespaces(t *testing.T) {
	c := newSite(t, "keys", "edge-certificates")
	other := c.elsewhere(t)
	other.serve("app", newBackend(t, "app"))
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, ", allowedRoutes: {namespaces: {from: All}}")))
	other.put("HTTPRoute", "route", `{parentRefs: [{name: edge, namespace: `+c.namespace+`}], rules: [{`+to("app")+`}]}`)
	policy := other.put("GatewayPolicy", "theirs", `{targetRefs: [{kind: HTTPRoute, name: route}], defaults: {auth: {apiKey: {secretRef: {name: theirs}}}}}`)
	other.secret("theirs", map[string][]byte{"bob": keyHash("bob")})
	r := c.runGateway()
	becomes(t, 500, port, "a", "/", "X-Api-Key", "bob")

	copies := map[string][]byte{}
	name := types.NamespacedName{Namespace: other.namespace, Name: "theirs"}
	if err := copied.PutCredentials(copies, name, copied.Credentials{Data: map[string][]byte{"bob": keyHash("bob")}, Version: "7"}); err != nil {
		t.Fatal(err)
	}
	c.secret("edge-certificates", copies)
	becomes(t, 200, port, "a", "/", "X-Api-Key", "bob")
	becomes(t, 401, port, "a", "/")
	r.usesPolicy(policyDigest(policy, name.String()+"@7"))

	c.secret("keys", map[string][]byte{"alice": keyHash("alice")})
	c.put("GatewayPolicy", "ours", `{targetRefs: [{kind: Gateway, name: edge}], overrides: {auth: {apiKey: {secretRef: {name: keys}}}}}`)
	becomes(t, 401, port, "a", "/", "X-Api-Key", "bob")
	becomes(t, 200, port, "a", "/", "X-Api-Key", "alice")
	// A policy for a Gateway of another namespace is for none.
	other.put("GatewayPolicy", "theirs", `{targetRefs: [{kind: Gateway, name: edge}], overrides: {auth: {apiKey: {secretRef: {name: theirs}}}}}`)
	becomes(t, 401, port, "a", "/", "X-Api-Key", "bob")
	becomes(t, 200, port, "a", "/", "X-Api-Key", "alice")
}
