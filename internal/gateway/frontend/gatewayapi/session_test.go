package gatewayapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// sessionCluster is a Gateway with a policy, and a route with two rules, of which the second says itself what becomes of sessions.
const sessionCluster = `
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: slipway
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
kind: HTTPRoute
metadata: {namespace: infra, name: shop, generation: 1}
spec:
  parentRefs: [{name: edge}]
  rules:
    - {name: plain, backendRefs: [{name: app, port: 80}]}
    - {name: own, matches: [{path: {value: /own}}], sessionPersistence: {sessionName: own}, backendRefs: [{name: app, port: 80}]}
---
kind: Service
metadata: {namespace: infra, name: app}
spec: {ports: [{port: 80}]}
---
kind: GatewayPolicy
metadata: {namespace: infra, name: base, uid: base, generation: 1}
spec:
  targetRefs: [{kind: Gateway, name: edge}]
  %s
---
kind: GatewayPolicy
metadata: {namespace: infra, name: rule, uid: rule, generation: 1}
spec:
  targetRefs: [{kind: HTTPRoute, name: shop, sectionName: plain}]
  %s
`

func TestAPolicyGivesAffinityToRules(t *testing.T) {
	for name, tc := range map[string]struct {
		gateway, rule string
		plain, own    string
	}{
		"a default":                    {"defaults: {sessionAffinity: {cookie: {name: base}}}", "defaults: {maxBodyBytes: 1}", "0 base", "0 own"},
		"a more specific one":          {"defaults: {sessionAffinity: {cookie: {name: base}}}", "defaults: {sessionAffinity: {header: {name: x-rule}}}", "2 x-rule", "0 own"},
		"an override":                  {"overrides: {sessionAffinity: {clientAddress: {}}}", "defaults: {sessionAffinity: {header: {name: x-rule}}}", "3 ", "3 "},
		"an override of a rule":        {"defaults: {maxBodyBytes: 1}", "overrides: {sessionAffinity: {header: {name: x-rule}}}", "2 x-rule", "0 own"},
		"none for a rule":              {"defaults: {sessionAffinity: {cookie: {name: base}}}", "defaults: {sessionAffinity: {none: {}}}", "none", "0 own"},
		"none for all":                 {"overrides: {sessionAffinity: {none: {}}}", "defaults: {sessionAffinity: {header: {name: x-rule}}}", "none", "none"},
		"other settings stay by their": {"overrides: {maxBodyBytes: 5}", "defaults: {sessionAffinity: {cookie: {lifetimeSeconds: 60}}}", "0 ", "0 own"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sessionGraph(t, tc.gateway, tc.rule)
			got := map[string]string{}
			for _, rule := range g.Rules {
				if rule.Fault != nil {
					t.Fatalf("%s: %s", rule.Name, rule.Fault.Message)
				}
				got[rule.Path] = saysAffinity(rule.Affinity)
			}
			if got["/"] != tc.plain || got["/own"] != tc.own {
				t.Errorf("got %q, want %q and %q", got, tc.plain, tc.own)
			}
		})
	}
}

func sessionGraph(t *testing.T, gateway, rule string) *gatewayapi.Graph {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(sessionCluster, gateway, rule)), 0o600); err != nil {
		t.Fatal(err)
	}
	return gatewayapi.Build(read(t, file))
}

func saysAffinity(a *affinity.Policy) string {
	if a == nil {
		return ""
	}
	if a.By == affinity.None {
		return "none"
	}
	return fmt.Sprint(a.By, " ", a.Name)
}

func TestAPolicyWhoseAffinityCannotBeServedIsRefused(t *testing.T) {
	for _, settings := range []string{"{}", "{header: {name: x-a}, clientAddress: {}}", "{header: {name: Host}}", "{cookie: {name: a;b}}", "{cookie: {lifetimeSeconds: 0}}"} {
		g := sessionGraph(t, "defaults: {sessionAffinity: "+settings+"}", "defaults: {maxBodyBytes: 1}")
		for _, rule := range g.Rules {
			if rule.Fault == nil {
				t.Errorf("%s: rule %s is served", settings, rule.Name)
			}
		}
	}
}
