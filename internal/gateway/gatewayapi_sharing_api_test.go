//go:build apitest

package gateway

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// tells waits until the gateway tells of limits that are not shared, or does not, and serves its routes all the same.
func (r *running) tells(apart bool, routes ...string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		got := r.revision()
		told := slices.ContainsFunc(got.Problems, func(p document.Problem) bool { return p.Reason == slipwayv1alpha1.ReasonLimitNotShared })
		if told != apart {
			return fmt.Errorf("it says %+v", got.Problems)
		}
		for _, route := range routes {
			if !slices.Contains(got.Routes, route) {
				return fmt.Errorf("it serves %q, want %q among it", got.Routes, route)
			}
		}
		return nil
	})
}

// measures returns the lines of a metric.
func (r *running) measures(metric string) (lines []string) {
	r.t.Helper()
	response, err := http.Get("http://" + r.admin.String() + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, metric) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// The pods find each other by the Service of their Gateway, with the rights that they have, and tell if they do not reach each other.
func TestThePodsOfAGatewayFindEachOther(t *testing.T) {
	c := newSite(t, "edge-certificates")
	c.serve("app", newBackend(t, "app"))
	port := environment.FreePort(t)
	c.put("Gateway", "edge", gatewaySpec(httpListener("http", port, ""), httpListener("between-pods", 15022, "")))
	route := c.put("HTTPRoute", "shop", `{parentRefs: [{name: edge}], rules: [{`+to("app")+`}]}`)
	policy := c.put("GatewayPolicy", "limit", `{targetRefs: [{kind: HTTPRoute, name: shop}], defaults: {rateLimit: {requests: 6, period: 1h, count: Gateway}}}`)
	c.secret("edge-certificates", map[string][]byte{copied.ReplicasKey: bytes.Repeat([]byte("k"), copied.SecretBytes)})
	c.serve("edge", newBackend(t, "another pod, without a port for others"))
	r := c.runGateway(func(o *Options) { o.Peers = "127.0.0.1:0" })
	r.says([]string{routeDigest(route), policyDigest(policy)}, "http")
	r.tells(true, routeDigest(route), policyDigest(policy))
	allowed := 0
	for range 10 {
		if got, _ := asks(port, http.MethodGet, "shop.example.com", "/", ""); got == http.StatusOK {
			allowed++
		}
	}
	if allowed != 3 {
		t.Errorf("%d requests were allowed, want the half of 6: the other pod may allow as many", allowed)
	}
	want := fmt.Sprintf(`slipway_gateway_shared_limit_replicas{gateway="%s/edge",state="known"} 1`, c.namespace)
	if got := r.measures("slipway_gateway_shared_limit_replicas"); !slices.Contains(got, want) {
		t.Errorf("it measures %q, want %q", got, want)
	}
	c.put("GatewayPolicy", "limit", `{targetRefs: [{kind: HTTPRoute, name: shop}], defaults: {rateLimit: {requests: 6, period: 1h}}}`)
	r.tells(false, routeDigest(route))
	if got := r.measures("slipway_gateway_shared_limit_replicas"); len(got) > 0 {
		t.Errorf("without a shared limit it measures %q", got)
	}
}
