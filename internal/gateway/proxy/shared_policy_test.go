package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// startSharingPolicies starts three replicas of a Gateway with policies.
func startSharingPolicies(t testing.TB, secret map[string][]byte, routes, policies string) []*sharing {
	t.Helper()
	return startSharingTable(t, ServerOptions{HTTPPort: 80}, func(backend string) *table.Table {
		return tableOfGateway(t, secret, routes, policies, backend)
	})
}

// limitedRoute is a route of a namespace. They all have the same name, and so have their rules.
func limitedRoute(namespace, path string) string {
	return `
- metadata: {namespace: ` + namespace + `, name: shop, uid: ` + namespace + `}
  spec:
    parentRefs: [{namespace: infra, name: edge}]
    rules: [{name: all, matches: [{path: {type: PathPrefix, value: ` + path + `}}], backendRefs: [{name: app, port: 80}]}]
`
}

// limitPolicy is a policy of a namespace for its route. They all have the same name.
func limitPolicy(namespace, limit, auth string) string {
	return `
- metadata: {namespace: ` + namespace + `, name: limit, uid: ` + namespace + `limit}
  spec:
    targetRefs: [{kind: HTTPRoute, name: shop}]
    defaults: {rateLimit: ` + limit + auth + `}
`
}

// A policy of another tenant that says the same, for a route and clients of the same names, neither uses up a count nor learns of it.
func TestAPolicyOfAnotherTenantHasACountOfItsOwn(t *testing.T) {
	sum := sha256.Sum256([]byte("key"))
	secret := map[string][]byte{"alice": []byte("sha256:" + hex.EncodeToString(sum[:]))}
	for per, auth := range map[string]string{"ClientAddress": "", "Route": "", "Key": ", auth: {apiKey: {secretRef: {name: keys}}}"} {
		t.Run(per, func(t *testing.T) {
			limit := "{requests: 12, period: 1h, count: Gateway, per: " + per + "}"
			list := startSharingPolicies(t, secret, limitedRoute("team", "/")+limitedRoute("other", "/other"),
				limitPolicy("team", limit, auth)+limitPolicy("other", limit, auth))
			allowed := func(path string, requests int) (sum int) {
				for i := range requests {
					response, _ := list[i%len(list)].get(path, "X-Api-Key", "key")
					switch after := response.Header.Get("Retry-After"); {
					case response.StatusCode == http.StatusOK && after == "":
						sum++
					case response.StatusCode != http.StatusTooManyRequests:
						t.Fatalf("%s is answered with %d and Retry-After %q", path, response.StatusCode, after)
					}
				}
				return sum
			}
			for _, path := range []string{"/other", "/"} {
				before := decidedLate(list)
				got := allowed(path, 60)
				if late := int(decidedLate(list) - before); got < 12-late || got > 13+late {
					t.Errorf("%d requests for %s were allowed, want 12, or one more (%d were decided late)", got, path, late)
				}
			}
		})
	}
}

// What a rule has used up stays so, when an override with the same limit takes the place of the default. Other limits are counted apart.
func TestACountBelongsToTheRuleAndItsLimit(t *testing.T) {
	const limit = "{requests: 12, period: 1h, count: Gateway}"
	override := func(limit string) string {
		return `
- metadata: {namespace: infra, name: base, uid: base}
  spec:
    targetRefs: [{kind: Gateway, name: edge}]
    overrides: {rateLimit: ` + limit + `}
`
	}
	route := limitedRoute("team", "/")
	list := startSharingPolicies(t, nil, route, limitPolicy("team", limit, ""))
	backend, _ := recording(t)
	allowed := func(policies string) (sum int) {
		for _, s := range list {
			s.handler.Set(Config{Table: tableOfGateway(t, nil, route, policies, backend)})
		}
		for i := range 30 {
			if response, _ := list[i%len(list)].get("/"); response.StatusCode == http.StatusOK {
				sum++
			}
		}
		return sum
	}
	for _, step := range []struct {
		what, policies string
		least, most    int
	}{
		{"of the route", limitPolicy("team", limit, ""), 12, 13},
		{"of an override with the same limit", limitPolicy("team", limit, "") + override(limit), 0, 0},
		{"of the same rate in another period", override("{requests: 288, period: 24h, burst: 12, count: Gateway}"), 12, 13},
		{"of another burst", override("{requests: 12, period: 1h, burst: 5, count: Gateway}"), 5, 6},
	} {
		before := decidedLate(list)
		got := allowed(step.policies)
		if late := int(decidedLate(list) - before); got < step.least-late || got > step.most+late {
			t.Errorf("%s: %d requests were allowed, want %d to %d (%d were decided late)", step.what, got, step.least, step.most, late)
		}
	}
}
