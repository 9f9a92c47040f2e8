//go:build apitest

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

const backend = "backendService: {name: users, port: 8080}"

// create sends what a user wrote, like kubectl: a field that does not exist is an error.
func create(t *testing.T, namespace, manifest string) (*unstructured.Unstructured, error) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, manifest)
	}
	object.SetNamespace(namespace)
	return object, env.Client.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
}

func gateway(spec string) string {
	return "apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {generateName: edge-}\nspec: {" + spec + "}\n"
}

func TestTheShortestManifestIsValidAndGetsItsDefaults(t *testing.T) {
	namespace := env.Namespace(t)
	if _, err := create(t, namespace, `
apiVersion: slipway.dev/v1alpha1
kind: APIGateway
metadata: {name: edge}
spec:
  replicas: 2                 # image: optional, the release's own gateway
  routes:
    - {host: api.example.com, path: /users/, backendService: {name: user-service, port: 8080}}
    - {host: api.example.com, path: /products/, backendService: {name: product-service, port: 8081}}
`); err != nil {
		t.Fatal(err)
	}
	got := &slipwayv1alpha1.APIGateway{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "edge"}, got); err != nil {
		t.Fatal(err)
	}
	if got.Spec.Routes[1].PathType != slipwayv1alpha1.PathPrefix || *got.Spec.DrainSeconds != 30 || *got.Spec.Replicas != 2 {
		t.Errorf("defaults are missing in %+v", got.Spec)
	}
}

// What the API server accepts the gateway must be able to serve.
func TestEveryFieldOfAnAPIGatewayCanBeUsed(t *testing.T) {
	specs := map[string]string{
		"nothing": "",
		"pods":    "replicas: 0, image: registry.example.com/gateway:1, imagePullSecrets: [{name: pull}], resources: {requests: {cpu: 100m}}, autoscaling: {maxReplicas: 5}, drainSeconds: 0, accessLog: {samplePercent: 1}",
		// The operator's own requests stand in.
		"autoscaling without resources": "autoscaling: {maxReplicas: 5}",
		"tls":                           `tls: [{secretRef: {name: edge-tls}, hosts: [a.example.com, "*.example.com"]}]`,
		"proxies":                       `trustedProxies: [10.0.0.0/8, "fd00::/8"]`,
		"Ingress":                       "expose: {ingressClassName: nginx, annotations: {a.example.com/b: c}}",
		"HTTPRoute":                     "expose: {type: HTTPRoute, gateway: {name: shared, namespace: infra, sectionName: web}}",
		"NodePort":                      "expose: {type: NodePort, httpNodePort: 30080, httpsNodePort: 30443}",
		"LoadBalancer":                  "expose: {type: LoadBalancer}",
		"ClusterIP":                     "expose: {type: ClusterIP}",
		"backend policies":              `backendPolicies: [{name: users, port: 8080, protocol: GRPC, maxConnections: 65535, maxPendingRequests: 0, maxRequests: 1000000}, {name: users, port: 8081}], connections: {max: 1, maxPerClient: 1}, routes: [{` + backend + `, timeouts: {idle: 0s}}, {` + backend + `, timeouts: {idle: 1h}}]`,
		"health checks":                 `healthChecks: [{name: users, port: 8080}, {name: users, port: 8081, path: "/healthz/a%20b", host: users.example.com, periodSeconds: 3600, timeoutSeconds: 300, healthyThreshold: 100, unhealthyThreshold: 1}], routes: [{` + backend + `}]`,
	}
	for name, route := range map[string]string{
		"match":     `name: a.b-1, host: "*.example.com", path: "/a%20b/c~d@e'f", methods: [GET, PROPFIND, M-SEARCH], headers: [{name: X-A}, {name: x-b, value: "", type: Exact}], queryParams: [{name: a b, value: c.*, type: RegularExpression}], ` + backend,
		"any path":  `backendService: {name: users, port: 8080}`,
		"regex":     `path: "^/v[0-9]+//?.*", pathType: RegularExpression, ` + backend,
		"weights":   `backends: [{name: a, port: 1, weight: 0}, {name: a, port: 2, weight: 9}, {name: b, port: 1}]`,
		"rewrite":   `path: /a, rewrite: {pathPrefix: /, host: b.example.com}, ` + backend,
		"path":      `path: /a, pathType: Exact, rewrite: {path: /x/y%20z}, ` + backend,
		"headers":   `requestHeaders: {set: [{name: X-A, value: "a b\tc"}], add: [{name: X-A, value: ""}], remove: [Cookie]}, responseHeaders: {remove: [Server]}, ` + backend,
		"redirect":  `redirect: {scheme: https, host: b.example.com, port: 8443, path: /x, statusCode: 308}`,
		"direct":    `directResponse: {statusCode: 503, body: "closed\n", contentType: text/html}`,
		"mirror":    `mirror: {backendService: {name: copy, port: 1}, percent: 5}, ` + backend,
		"external":  "auth: {external: {backendService: {name: auth, port: 80}, path: /check, requestHeaders: [Cookie, X-Key], backendHeaders: [X-User], identityHeader: X-User, timeout: 500ms, onFailure: LetIn}}, rateLimit: {requests: 1, per: Key}, " + backend,
		"claims":    "auth: {jwt: {issuer: a, jwksURL: 'https://id.example.com/keys', requireClaims: [{claim: a.b, values: ['1', b c]}, {claim: a.b, values: [d]}]}}, " + backend,
		"ext_authz": "auth: {external: {backendService: {name: auth, port: 80}, protocol: GRPC, body: {maxBytes: 1048576}}}, " + backend,
		"mirrors":   `mirrors: [{backendService: {name: a, port: 80}, percent: 5}, {backendService: {name: b, port: 80}, fraction: {numerator: 1, denominator: 1000}}], ` + backend,
		"edits":     `backends: [{name: a, port: 80, requestHeaders: {set: [{name: X-A, value: a}], add: [{name: X-B, value: b}], remove: [X-C]}, responseHeaders: {remove: [Server]}}]`,
		"prefix":    "path: /users, redirect: {pathPrefix: /people}",
		"codes":     `retries: {attempts: 1, retryOn: [Reset], statusCodes: [429, 500]}, ` + backend,
		"addresses": `clientAddresses: {allow: [10.0.0.0/8, "2001:db8::/32", 192.0.2.1], deny: [10.1.0.0/16]}, ` + backend,
		"cookie":    `sessionAffinity: {cookie: {}}, ` + backend,
		"a cookie":  `sessionAffinity: {cookie: {name: lb, lifetimeSeconds: 34560000}}, ` + backend,
		"by header": `sessionAffinity: {header: {name: X-User}}, ` + backend,
		"by client": `sessionAffinity: {clientAddress: {}}, ` + backend,
		"by load":   `sessionAffinity: {none: {}}, ` + backend,
		"cors":      `cors: {allowOrigins: ["https://*.example.com", "http://localhost:3000"], allowMethods: [PUT], allowHeaders: [X-A], exposeHeaders: [X-B], allowCredentials: true, maxAgeSeconds: 600}, ` + backend,
		"any page":  `cors: {allowOrigins: ["*"]}, ` + backend,
		"limits":    `maxBodyBytes: 1048576, timeouts: {request: 1m30s, backend: 500ms}, retries: {attempts: 1, retryOn: [ConnectFailure, Reset, Timeout, "502", "503", "504"]}, rateLimit: {requests: 100, period: 1m, burst: 10, per: ClientAddress}, ` + backend,
		"encoded":   `compression: {algorithms: [Gzip, Zstd], minBytes: 1, contentTypes: [text/*, application/vnd.api+json]}, ` + backend,
		"by itself": `compression: {}, ` + backend,
		"closed":    `maintenance: {}, ` + backend,
		"at night":  `maintenance: {timeZone: Europe/Berlin, body: back soon, windows: [{schedule: "0 2 * * *", duration: 1h30m}]}, redirect: {path: /x}`,
		"kept":      `cache: {}, ` + backend,
		"kept long": `cache: {mode: Store, maxBytes: 8388608, maxAgeSeconds: 2592000}, ` + backend,
		"no limit":  `timeouts: {request: 0s, backend: 24h}, ` + backend,
		"keys":      `auth: {apiKey: {secretRef: {name: keys}, header: X-Key, queryParam: key, clientHeader: X-Client}}, rateLimit: {requests: 1, per: Key}, ` + backend,
		"basic":     `auth: {basic: {secretRef: {name: users}, realm: Our shop, userHeader: X-User}}, ` + backend,
		"jwt":       `auth: {jwt: {issuer: "https://i.example.com", audiences: [a], jwksURL: "https://i.example.com/keys", claimsToHeaders: [{claim: sub, header: X-Sub}]}}, ` + backend,
		"jwt keys":  `auth: {jwt: {issuer: i, jwksSecretRef: {name: jwks, key: keys.json}}}, ` + backend,
	} {
		specs["route "+name] = "routes: [{" + route + "}]"
	}
	namespace := env.Namespace(t)
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			object, err := create(t, namespace, gateway(spec))
			if err != nil {
				t.Fatal(err)
			}
			typed := &slipwayv1alpha1.APIGateway{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
				t.Fatal(err)
			}
			_, problems := apigateway.Compile(apigateway.Input{Routes: typed.Spec.Routes, HealthChecks: typed.Spec.HealthChecks})
			for _, problem := range problems {
				if problem.Reason == slipwayv1alpha1.ReasonInvalid || problem.Reason == slipwayv1alpha1.ReasonInvalidRoute || problem.Reason == slipwayv1alpha1.ReasonInvalidRegex {
					t.Errorf("the API server accepts what the gateway does not: %s", problem.Message)
				}
			}
		})
	}
}

func TestABadAPIGatewayIsRefusedWithOneSentenceThatNamesTheField(t *testing.T) {
	tests := map[string]struct{ spec, want string }{
		"replicas":                {"replicas: 101", "spec.replicas"},
		"image":                   {"image: a b", "spec.image must not hold white space"},
		"drain":                   {"drainSeconds: 3601", "spec.drainSeconds"},
		"proxies":                 {"trustedProxies: [somewhere]", "spec.trustedProxies must be address ranges"},
		"autoscaling":             {"autoscaling: {maxReplicas: 5}, resources: {requests: {memory: 1Gi}}", "spec.resources.requests.cpu is required with spec.autoscaling"},
		"sample":                  {"accessLog: {samplePercent: 101}", "spec.accessLog.samplePercent"},
		"tls host":                {"tls: [{secretRef: {name: a}, hosts: [A.example.com]}]", "spec.tls[0].hosts[0]"},
		"expose type":             {"expose: {type: Moon}", "spec.expose.type"},
		"class without Ingress":   {"expose: {type: ClusterIP, ingressClassName: a}", "spec.expose.ingressClassName cannot be combined"},
		"HTTPRoute alone":         {"expose: {type: HTTPRoute}", "spec.expose.gateway is required"},
		"gateway without":         {"expose: {gateway: {name: a}}", "spec.expose.gateway is required with spec.expose.type HTTPRoute and cannot be combined"},
		"node port without":       {"expose: {httpNodePort: 30080}", "spec.expose.httpNodePort and httpsNodePort need"},
		"too many routes":         {"routes: [" + strings.Repeat("{"+backend+"}, ", 1001) + "]", "spec.routes: Too many: 1001: must have at most 1000 items"},
		"policy without a port":   {"backendPolicies: [{name: a}]", "spec.backendPolicies[0].port"},
		"policy twice":            {"backendPolicies: [{name: a, port: 1}, {name: a, port: 1}]", "spec.backendPolicies[1]: Duplicate value"},
		"policy protocol":         {"backendPolicies: [{name: a, port: 1, protocol: SPDY}]", "spec.backendPolicies[0].protocol"},
		"policy connections":      {"backendPolicies: [{name: a, port: 1, maxConnections: 0}]", "spec.backendPolicies[0].maxConnections"},
		"policy pending":          {"backendPolicies: [{name: a, port: 1, maxPendingRequests: -1}]", "spec.backendPolicies[0].maxPendingRequests"},
		"policy requests":         {"backendPolicies: [{name: a, port: 1, maxRequests: 1000001}]", "spec.backendPolicies[0].maxRequests"},
		"connections":             {"connections: {max: 0}", "spec.connections.max"},
		"connections of a client": {"connections: {maxPerClient: 0}", "spec.connections.maxPerClient"},
		"check without a port":    {"healthChecks: [{name: a}]", "spec.healthChecks[0].port"},
		"check twice":             {"healthChecks: [{name: a, port: 1}, {name: a, port: 1}]", "spec.healthChecks[1]: Duplicate value"},
		"check path":              {"healthChecks: [{name: a, port: 1, path: healthz}]", "a path must start with '/'"},
		"check host":              {`healthChecks: [{name: a, port: 1, host: "*.example.com"}]`, "spec.healthChecks[0].host"},
		"check period":            {"healthChecks: [{name: a, port: 1, periodSeconds: 0}]", "spec.healthChecks[0].periodSeconds"},
		"check timeout":           {"healthChecks: [{name: a, port: 1, timeoutSeconds: 301}]", "spec.healthChecks[0].timeoutSeconds"},
		"check threshold":         {"healthChecks: [{name: a, port: 1, healthyThreshold: 0}]", "spec.healthChecks[0].healthyThreshold"},
		"check threshold, high":   {"healthChecks: [{name: a, port: 1, unhealthyThreshold: 101}]", "spec.healthChecks[0].unhealthyThreshold"},
		"the same Service twice":  {"routes: [{backends: [{name: a, port: 1}, {name: a, port: 1}]}]", `spec.routes[0].backends[1]: Duplicate value`},
		"the same header twice":   {"routes: [{headers: [{name: a}, {name: a}], " + backend + "}]", `spec.routes[0].headers[1]: Duplicate value`},
	}
	for name, route := range map[string]struct{ spec, want string }{
		"no action":                {"path: /a", "spec.routes: set exactly one of backendService, backends, redirect and directResponse"},
		"two actions":              {"redirect: {path: /a}, " + backend, "spec.routes: set exactly one of"},
		"name":                     {"name: A, " + backend, "spec.routes: name must hold only"},
		"host":                     {"host: Api.example.com, " + backend, "host must be a lower case DNS name"},
		"host with port":           {"host: 'api.example.com:80', " + backend, "host must be a lower case DNS name"},
		"wildcard inside":          {"host: 'a.*.example.com', " + backend, "host must be a lower case DNS name"},
		"relative path":            {"path: a, " + backend, "spec.routes: path must start with '/'"},
		"path with query":          {"path: '/a?b', " + backend, "spec.routes: path must start with '/' and hold only"},
		"path with dots":           {"path: /a/../b, " + backend, "spec.routes: path must start with '/' and hold only"},
		"empty segment":            {"path: /a//b, pathType: Exact, " + backend, "spec.routes: path must start with '/' and hold only"},
		"escaped slash":            {"path: /a%2Fb, " + backend, "spec.routes: path must start with '/' and hold only"},
		"long path":                {"path: /" + strings.Repeat("a", 512) + ", " + backend, "spec.routes[0].path"},
		"path type":                {"pathType: Glob, " + backend, "spec.routes[0].pathType"},
		"method":                   {"methods: [get], " + backend, "methods must be upper case letters"},
		"CONNECT":                  {"methods: [CONNECT], " + backend, "methods must be upper case letters such as GET, and not CONNECT"},
		"header name":              {"headers: [{name: a b}], " + backend, "a header name must hold only"},
		"header regex":             {"headers: [{name: a, type: RegularExpression}], " + backend, "headers: type RegularExpression needs a value"},
		"query regex":              {"queryParams: [{name: a, type: RegularExpression}], " + backend, "queryParams: type RegularExpression needs a value"},
		"service name":             {"backendService: {name: A, port: 1}", "the name of a Service must start with a letter"},
		"port":                     {"backendService: {name: a, port: 0}", "spec.routes[0].backendService.port"},
		"no backends":              {"backends: []", "spec.routes[0].backends"},
		"no weight":                {"backends: [{name: a, port: 1, weight: 0}]", "spec.routes: backends: at least one weight must be greater than 0"},
		"weight":                   {"backends: [{name: a, port: 1, weight: -1}]", "spec.routes[0].backends[0].weight"},
		"empty rewrite":            {"rewrite: {}, " + backend, "rewrite: set at least one of pathPrefix, path and host"},
		"two rewrites":             {"rewrite: {path: /a, pathPrefix: /b}, " + backend, "rewrite: set at most one of pathPrefix and path"},
		"prefix of Exact":          {"pathType: Exact, rewrite: {pathPrefix: /b}, " + backend, "spec.routes: rewrite.pathPrefix needs pathType Prefix"},
		"rewrite path":             {"rewrite: {path: a}, " + backend, "must start with '/'"},
		"rewrite redirect":         {"rewrite: {path: /a}, redirect: {path: /b}", "spec.routes: rewrite, mirror, mirrors and retries need backendService or backends"},
		"fixed header":             {"requestHeaders: {set: [{name: hOst, value: a}]}, " + backend, "cannot be changed"},
		"expectation":              {"requestHeaders: {set: [{name: Expect, value: a}]}, " + backend, "cannot be changed"},
		"fixed removal":            {"responseHeaders: {remove: [Content-Length]}, " + backend, "cannot be changed"},
		"header value":             {`requestHeaders: {add: [{name: X-A, value: "a\n"}]}, ` + backend, "the value of a header must not hold line breaks"},
		"empty redirect":           {"redirect: {statusCode: 301}", "redirect: set at least one of scheme, host, port, path and pathPrefix"},
		"redirect code":            {"redirect: {path: /a, statusCode: 200}", "spec.routes[0].redirect.statusCode"},
		"direct code":              {"directResponse: {statusCode: 100}", "spec.routes[0].directResponse.statusCode"},
		"mirror":                   {"mirror: {backendService: {name: a, port: 1}, percent: 101}, " + backend, "spec.routes[0].mirror.percent"},
		"two ways":                 {"auth: {external: {backendService: {name: auth, port: 80}}, apiKey: {secretRef: {name: a}}}, " + backend, "auth: set exactly one of apiKey, basic, jwt, external and oidc"},
		"a long wait":              {"auth: {external: {backendService: {name: auth, port: 80}, timeout: 31s}}, " + backend, "auth.external.timeout must be from 1ms to 30s"},
		"a claim without a value":  {"auth: {jwt: {issuer: a, jwksURL: 'https://id.example.com/keys', requireClaims: [{claim: a}]}}, " + backend, "requireClaims[0].values"},
		"a claim of no value":      {"auth: {jwt: {issuer: a, jwksURL: 'https://id.example.com/keys', requireClaims: [{claim: a, values: []}]}}, " + backend, "requireClaims[0].values"},
		"a claim that is a number": {"auth: {jwt: {issuer: a, jwksURL: 'https://id.example.com/keys', requireClaims: [{claim: a, values: [1]}]}}, " + backend, "requireClaims[0].values"},
		"a large body":             {"auth: {external: {backendService: {name: auth, port: 80}, body: {maxBytes: 1048577}}}, " + backend, "auth.external.body.maxBytes"},
		"no body":                  {"auth: {external: {backendService: {name: auth, port: 80}, body: {}}}, " + backend, "auth.external.body.maxBytes"},
		"a protocol":               {"auth: {external: {backendService: {name: auth, port: 80}, protocol: grpc}}, " + backend, "auth.external.protocol"},
		"what failed":              {"auth: {external: {backendService: {name: auth, port: 80}, onFailure: Ignore}}, " + backend, "spec.routes[0].auth.external.onFailure"},
		"five mirrors":             {"mirrors: [{backendService: {name: a, port: 80}}, {backendService: {name: a, port: 80}}, {backendService: {name: a, port: 80}}, {backendService: {name: a, port: 80}}, {backendService: {name: a, port: 80}}], " + backend, "spec.routes[0].mirrors"},
		"a low code":               {"retries: {statusCodes: [399]}, " + backend, "spec.routes[0].retries.statusCodes[0]"},
		"no addresses":             {"clientAddresses: {}, " + backend, "spec.routes[0].clientAddresses"},
		"no affinity":              {"sessionAffinity: {}, " + backend, "spec.routes[0].sessionAffinity"},
		"two affinities":           {"sessionAffinity: {header: {name: X-A}, clientAddress: {}}, " + backend, "spec.routes[0].sessionAffinity"},
		"a bad cookie":             {"sessionAffinity: {cookie: {name: 'a;b'}}, " + backend, "sessionAffinity.cookie.name must hold only letters"},
		"no lifetime":              {"sessionAffinity: {cookie: {lifetimeSeconds: 0}}, " + backend, "spec.routes[0].sessionAffinity.cookie.lifetimeSeconds"},
		"a bad header":             {"sessionAffinity: {header: {name: 'a b'}}, " + backend, "a header name must hold only letters"},
		"cache mode":               {"cache: {mode: Maybe}, " + backend, "spec.routes[0].cache.mode"},
		"nothing kept":             {"cache: {maxBytes: 0}, " + backend, "spec.routes[0].cache.maxBytes"},
		"kept too long":            {"cache: {maxAgeSeconds: 2592001}, " + backend, "spec.routes[0].cache.maxAgeSeconds"},
		"algorithm":                {"compression: {algorithms: [Brotli]}, " + backend, "spec.routes[0].compression.algorithms[0]"},
		"algorithm twice":          {"compression: {algorithms: [Gzip, Gzip]}, " + backend, "spec.routes[0].compression.algorithms[1]"},
		"a short window":           {"maintenance: {windows: [{schedule: '@daily', duration: 30s}]}, " + backend, "duration must be at least 1m"},
		"no windows":               {"maintenance: {windows: []}, " + backend, "spec.routes[0].maintenance.windows"},
		"compress nothing":         {"compression: {minBytes: 0}, " + backend, "spec.routes[0].compression.minBytes"},
		"content type":             {"compression: {contentTypes: ['text/html; charset=utf-8']}, " + backend, "a content type must be like text/html"},
		"a name":                   {"clientAddresses: {allow: [office.example.com]}, " + backend, "an address must be like 10.0.0.7"},
		"origin":                   {"cors: {allowOrigins: [example.com]}, " + backend, "an origin must be * or like https://shop.example.com"},
		"credentials":              {"cors: {allowOrigins: ['*'], allowCredentials: true}, " + backend, "cors: allowCredentials needs origins by name in allowOrigins"},
		"body":                     {"maxBodyBytes: 0, " + backend, "spec.routes[0].maxBodyBytes"},
		"duration":                 {"timeouts: {request: 10}, " + backend, "spec.routes[0].timeouts.request"},
		"unit":                     {"timeouts: {request: 10d}, " + backend, "a duration must be written like 500ms, 10s or 1m30s"},
		"long duration":            {"timeouts: {request: 25h}, " + backend, "a duration must be written like 500ms, 10s or 1m30s, with the units ms, s, m and h, and be at most 24h"},
		"backend timeout":          {"timeouts: {request: 1s, backend: 2s}, " + backend, "timeouts: backend must not exceed request"},
		"attempts":                 {"retries: {attempts: 11}, " + backend, "spec.routes[0].retries.attempts"},
		"cause":                    {"retries: {retryOn: ['500']}, " + backend, "spec.routes[0].retries.retryOn[0]"},
		"no auth":                  {"auth: {}, " + backend, "auth: set exactly one of apiKey, basic, jwt, external and oidc"},
		"two auths":                {"auth: {apiKey: {secretRef: {name: a}}, basic: {secretRef: {name: a}}}, " + backend, "auth: set exactly one of apiKey, basic, jwt, external and oidc"},
		"realm":                    {`auth: {basic: {secretRef: {name: a}, realm: "a\"b"}}, ` + backend, "realm must hold only"},
		"no key set":               {"auth: {jwt: {issuer: i}}, " + backend, "jwt: set exactly one of jwksURL and jwksSecretRef"},
		"key set":                  {"auth: {jwt: {issuer: i, jwksURL: 'file:///a'}}, " + backend, "jwt.jwksURL must be an http or https address"},
		"rate":                     {"rateLimit: {requests: 0}, " + backend, "spec.routes[0].rateLimit.requests"},
		"period":                   {"rateLimit: {requests: 1, period: 10ms}, " + backend, "rateLimit.period must be at least 1s"},
		"rate per key":             {"rateLimit: {requests: 1, per: Key}, " + backend, "spec.routes: rateLimit.per Key needs auth"},
	} {
		tests["route: "+name] = struct{ spec, want string }{"routes: [{" + route.spec + "}]", route.want}
	}
	namespace := env.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, namespace, gateway(tc.spec))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the answer is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestTheNameOfAnAPIGatewayIsBounded(t *testing.T) {
	namespace := env.Namespace(t)
	for name, want := range map[string]string{
		strings.Repeat("a", 53): "metadata.name must be at most 52 characters",
		"1a":                    "metadata.name must start with a letter",
	} {
		_, err := create(t, namespace, strings.Replace(gateway(""), "generateName: edge-", "name: "+name, 1))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the answer is %v, want one that says %q", name, err, want)
		}
	}
}

// The API server bounds what its rules may cost for an object, too, and not only what
// they might cost for any.
func TestAsManyRoutesAsAnObjectCanHoldAreAccepted(t *testing.T) {
	const size = 1_300_000 // bytes; etcd takes 1.5 MB
	tests := map[string]func(i int) string{
		"plain":     func(i int) string { return fmt.Sprintf("host: app-%d.example.com, path: /api, %s", i, backend) },
		"long path": func(i int) string { return fmt.Sprintf("path: /%d/%s, %s", i, strings.Repeat("a", 500), backend) },
		"many of each": func(i int) string {
			return fmt.Sprintf("path: /%d, methods: [GET, PUT], timeouts: {request: 10s, backend: 5s}, responseHeaders: {remove: [%s]}, auth: {apiKey: {secretRef: {name: keys}}}, rateLimit: {requests: 10, period: 1m}, cors: {allowOrigins: [https://a.example.com], allowHeaders: [%s]}, %s", i, numbered("X-%d"), numbered("Y-%d"), backend)
		},
		"weights": func(i int) string {
			return fmt.Sprintf("path: /%d, backends: [%s]", i, numbered("{name: service-%d, port: 80, weight: 5}"))
		},
	}
	namespace := env.Namespace(t)
	for name, route := range tests {
		t.Run(name, func(t *testing.T) {
			text, n := &strings.Builder{}, 0
			for ; n < 1000 && text.Len() < size; n++ {
				fmt.Fprintf(text, "  - {%s}\n", route(n))
			}
			if _, err := create(t, namespace, strings.Replace(gateway(""), "spec: {}", "spec:\n  routes:\n"+text.String(), 1)); err != nil {
				t.Errorf("%d routes of %d bytes: %.500v", n, text.Len(), err)
			}
			t.Logf("%d routes of %d bytes as YAML", n, text.Len())
		})
	}
}

func TestKubectlGetShowsAndKubectlScaleScalesAnAPIGateway(t *testing.T) {
	namespace := env.Namespace(t)
	if _, err := create(t, namespace, strings.Replace(gateway("replicas: 3"), "generateName: edge-", "name: edge", 1)); err != nil {
		t.Fatal(err)
	}
	edge := &slipwayv1alpha1.APIGateway{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "edge"}, edge); err != nil {
		t.Fatal(err)
	}
	edge.Status.Replicas, edge.Status.Selector = 2, "slipway.dev/apigateway=edge"
	edge.Status.Summary = slipwayv1alpha1.APIGatewaySummary{Routes: "9/10", Replicas: "2/3", Address: "192.0.2.1", Reason: "NoEndpoints"}
	edge.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "RoutesNotLive", LastTransitionTime: metav1.Now()}}
	if err := env.Client.Status().Update(t.Context(), edge); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Name", "Ready", "Routes", "Replicas", "Address", "Age", "Reason"}, columns(t, namespace, func(c metav1.TableColumnDefinition, _ any) string { return c.Name })); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	cells := columns(t, namespace, func(c metav1.TableColumnDefinition, cell any) string {
		if c.Name == "Age" {
			return "" // runs
		}
		return fmt.Sprint(cell)
	})
	if diff := cmp.Diff([]string{"edge", "False", "9/10", "2/3", "192.0.2.1", "", "NoEndpoints"}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}

	scale := &autoscalingv1.Scale{}
	if err := env.Client.SubResource("scale").Get(t.Context(), edge, scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 2 || scale.Status.Selector != "slipway.dev/apigateway=edge" {
		t.Errorf("scale is %+v of %+v", scale.Status, scale.Spec)
	}
	scale.Spec.Replicas = 5
	if err := env.Client.SubResource("scale").Update(t.Context(), edge, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(edge), edge); err != nil || *edge.Spec.Replicas != 5 {
		t.Errorf("after scaling %v, %v", edge.Spec.Replicas, err)
	}
}

// columns asks for a namespace's gateways as kubectl get does, and tells something of each column of the first.
func columns(t *testing.T, namespace string, tell func(metav1.TableColumnDefinition, any) string) []string {
	t.Helper()
	access, err := rest.HTTPClientFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(env.Config.Host, "/")+"/apis/slipway.dev/v1alpha1/namespaces/"+namespace+"/apigateways", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	asked.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := access.Do(asked)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	printed := metav1.Table{}
	if err := json.NewDecoder(answer.Body).Decode(&printed); err != nil || len(printed.Rows) != 1 {
		t.Fatalf("%s: %v, %+v", answer.Status, err, printed)
	}
	told := make([]string, len(printed.ColumnDefinitions))
	for i, column := range printed.ColumnDefinitions {
		told[i] = tell(column, printed.Rows[0].Cells[i])
	}
	return told
}

// numbered is a list of 16.
func numbered(format string) string {
	items := make([]string, 16)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ", ")
}
