//go:build apitest

package v1alpha1_test

import (
	"strings"
	"testing"
)

func gatewayPolicy(spec string) string {
	return "apiVersion: slipway.dev/v1alpha1\nkind: GatewayPolicy\nmetadata: {generateName: policy-}\nspec: {" + spec + "}\n"
}

func TestEveryFieldOfAGatewayPolicyCanBeUsed(t *testing.T) {
	namespace := env.Namespace(t)
	const target = "targetRefs: [{kind: Gateway, name: edge}]"
	for name, spec := range map[string]string{
		"targets":   `targetRefs: [{kind: Gateway, name: edge}, {kind: Gateway, name: edge, sectionName: web}, {group: gateway.networking.k8s.io, kind: ListenerSet, name: a}, {kind: HTTPRoute, name: a, sectionName: "0"}, {kind: GRPCRoute, name: a}], defaults: {maxBodyBytes: 1}`,
		"overrides": target + ", overrides: {maxBodyBytes: 1125899906842624}",
		"both":      target + ", defaults: {rateLimit: {requests: 1}}, overrides: {rateLimit: {requests: 1, period: 1m, burst: 5, per: Route}}",
		"API keys":  target + ", defaults: {auth: {apiKey: {secretRef: {name: keys}, header: X-Key}}, rateLimit: {requests: 1, per: Key}}",
		"tokens":    target + ", overrides: {auth: {jwt: {issuer: a, jwksURL: 'https://id.example.com/keys', claimsToHeaders: [{claim: sub, header: X-Sub}], requireClaims: [{claim: groups, values: [a, b]}]}}}",
		"a Service": target + ", defaults: {rateLimit: {requests: 1, per: Key}, auth: {external: {backendService: {name: a, port: 80}, path: /check, identityHeader: X-User}}}, overrides: {auth: {external: {backendService: {name: a, port: 80}, onFailure: LetIn}}}",
		"shared":    target + ", defaults: {rateLimit: {requests: 1, period: 24h, count: Gateway, per: Key}, auth: {apiKey: {secretRef: {name: keys}}}}, overrides: {rateLimit: {requests: 1, burst: 5, count: Gateway}}",
		"a route":   target + ", defaults: {rateLimit: {requests: 1, count: Gateway, per: Route}}, overrides: {rateLimit: {requests: 1, count: Replica}}",
		"addresses": target + ", overrides: {clientAddresses: {allow: [10.0.0.0/8], deny: [10.1.2.3]}}",
		"CORS":      target + ", defaults: {cors: {allowOrigins: ['https://a.example.com'], allowCredentials: true}}",
		"backends":  target + ", overrides: {backends: {maxConnections: 65535, maxPendingRequests: 0, maxRequests: 1000000, healthCheck: {path: /healthz, host: a.example.com, periodSeconds: 1, timeoutSeconds: 300, healthyThreshold: 100, unhealthyThreshold: 1}}}",
		"checks":    target + ", defaults: {backends: {healthCheck: {}}}",
		"kept":      target + ", defaults: {cache: {}}, overrides: {cache: {mode: 'Off', maxBytes: 1, maxAgeSeconds: 1}}",
		"closed":    target + ", overrides: {maintenance: {}}",
		"encoded":   target + ", defaults: {compression: {}}, overrides: {compression: {algorithms: [Identity]}}",
	} {
		if _, err := create(t, namespace, gatewayPolicy(spec)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAGatewayPolicyWithAMistakeIsRefused(t *testing.T) {
	namespace := env.Namespace(t)
	const target = "targetRefs: [{kind: Gateway, name: edge}], "
	for spec, want := range map[string]string{
		target[:len(target)-2]:                                                "at least one of defaults and overrides",
		target + "defaults: {}":                                               "spec.defaults",
		"defaults: {maxBodyBytes: 1}":                                         "spec.targetRefs",
		"targetRefs: [], defaults: {maxBodyBytes: 1}":                         "spec.targetRefs",
		"targetRefs: [{kind: Service, name: a}], defaults: {maxBodyBytes: 1}": "spec.targetRefs[0].kind",
		"targetRefs: [{group: apps, kind: Gateway, name: a}], defaults: {maxBodyBytes: 1}":                                 "spec.targetRefs[0].group",
		"targetRefs: [{kind: Gateway, name: a, namespace: b}], defaults: {maxBodyBytes: 1}":                                `unknown field "spec.targetRefs[0].namespace"`,
		"targetRefs: [{kind: Gateway, name: a}, {kind: Gateway, name: a}], defaults: {maxBodyBytes: 1}":                    "every target may be named once",
		target + "defaults: {rateLimit: {requests: 1, per: Key}}":                                                          "rateLimit.per Key needs auth beside it",
		target + "defaults: {rateLimit: {requests: 1, per: Key}, auth: {external: {backendService: {name: a, port: 80}}}}": "rateLimit.per Key needs auth.external.identityHeader",
		target + "overrides: {rateLimit: {requests: 1, count: Cluster}}":                                                   "spec.overrides.rateLimit.count",
		target + "defaults: {rateLimit: {requests: 1, count: Gateway, per: Key}}":                                          "rateLimit.per Key needs auth beside it",
		target + "overrides: {maxBodyBytes: 0}":                                                                            "spec.overrides.maxBodyBytes",
		target + "overrides: {auth: {}}":                                                                                   "exactly one of apiKey, basic, jwt, external and oidc",
		target + "overrides: {auth: {external: {backendService: {name: a, port: 80, namespace: b}}}}":                      `unknown field "spec.overrides.auth.external.backendService.namespace"`,
		target + "overrides: {backends: {}}":                                                                               "spec.overrides.backends",
		target + "overrides: {backends: {maxConnections: 0}}":                                                              "spec.overrides.backends.maxConnections",
		target + "overrides: {backends: {protocol: GRPC}}":                                                                 `unknown field "spec.overrides.backends.protocol"`,
		target + "overrides: {backends: {healthCheck: {path: healthz}}}":                                                   "spec.overrides.backends.healthCheck.path",
		target + "overrides: {timeouts: {request: 1s}}":                                                                    `unknown field "spec.overrides.timeouts"`,
		target + "defaults: {compression: {algorithms: [Gzip, Identity]}}":                                                 "Identity stands alone",
		target + "defaults: {sessionAffinity: {none: {}, clientAddress: {}}}":                                              "spec.defaults.sessionAffinity",
		target + "defaults: {cors: {allowOrigins: ['*'], allowCredentials: true}}":                                         "allowCredentials needs origins by name",
	} {
		if _, err := create(t, namespace, gatewayPolicy(spec)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", spec, err, want)
		}
	}
}
