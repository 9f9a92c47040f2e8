//go:build apitest

package v1alpha1_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	duration = "a duration must be written like 500ms, 10s or 1m30s, with the units ms, s, m and h, and be at most 24h"
	amount   = "it must be a number, or one with a unit, such as 500m for cpu, and 64Mi, 10Gi or 10G for memory"
)

// Nobody reads a regular expression, and a rule that ends in an error says nothing to who wrote a field.
var unreadable = regexp.MustCompile(`should match|evaluating rule|no such overload|type conversion`)

func object(kind, spec string) string {
	return fmt.Sprintf("apiVersion: slipway.dev/v1alpha1\nkind: %s\nmetadata: {generateName: shop-}\nspec: {%s}\n", kind, spec)
}

func TestAMistakeIsToldInASentenceThatNamesTheField(t *testing.T) {
	const (
		app     = "image: 'shop:1', port: 80, "
		backup  = "source: shop, destination: 's3://shop', "
		restore = "backup: {name: shop}, target: {claim: shop, create: {size: 1Gi}}, "
	)
	routes := func(route string) string { return "routes: [{" + route + ", " + backend + "}]" }
	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"cpu of a WebApp":            {"WebApp", app + "resources: {requests: {cpu: 50x}}", []string{"spec.resources.requests[cpu]: ", amount}},
		"memory of a WebApp":         {"WebApp", app + "resources: {requests: {memory: 1Gi}, limits: {memory: 10GB}}", []string{"spec.resources.limits[memory]: ", amount}},
		"a unit alone":               {"WebApp", app + "resources: {requests: {memory: Mi}}", []string{"spec.resources.requests[memory]: ", amount}},
		"a unit alone, of a mover":   {"Backup", backup + "mover: {resources: {limits: {cpu: m}}}", []string{"spec.mover.resources.limits[cpu]: ", amount}},
		"no amount":                  {"WebApp", app + "resources: {requests: {memory: ''}}", []string{"spec.resources.requests[memory]: ", amount}},
		"a negative number":          {"WebApp", app + "resources: {requests: {memory: -1}}", []string{"spec.resources.requests.memory must not be negative"}},
		"a part of a byte":           {"WebApp", app + "resources: {requests: {memory: 100m}}", []string{"spec.resources.requests.memory must be a whole number of bytes"}},
		"half a byte":                {"WebApp", app + "resources: {requests: {memory: '1.5'}}", []string{"spec.resources.requests.memory must be a whole number of bytes"}},
		"memory of an APIGateway":    {"APIGateway", "resources: {limits: {memory: 10GB}}", []string{"spec.resources.limits[memory]: ", amount}},
		"memory of parameters":       {"GatewayParameters", "resources: {limits: {memory: 10GB}}", []string{"spec.resources.limits[memory]: ", amount}},
		"memory of a mover":          {"Backup", backup + "mover: {resources: {limits: {memory: 10GB}}}", []string{"spec.mover.resources.limits[memory]: ", amount}},
		"memory of a dump":           {"Backup", backup + "dump: {image: a, command: [b], resources: {limits: {memory: 10GB}}}", []string{"spec.dump.resources.limits[memory]: ", amount}},
		"memory of a restore":        {"Restore", restore + "mover: {resources: {limits: {memory: 10GB}}}", []string{"spec.mover.resources.limits[memory]: ", amount}},
		"size of a volume":           {"WebApp", app + "storage: {size: 10GB, mountPath: /data}", []string{"spec.storage.size must be a number of bytes, such as 10Gi"}},
		"root":                       {"WebApp", app + "storage: {size: 1Gi, mountPath: /}", []string{"spec.storage.mountPath must not be /: it would hide the whole image"}},
		"root of files":              {"WebApp", app + "files: [{mountPath: /, secretRef: {name: a}}]", []string{"mountPath must not be /: it would hide the whole image"}},
		"a relative path":            {"WebApp", app + "storage: {size: 1Gi, mountPath: data}", []string{"spec.storage.mountPath must be absolute"}},
		"a path upwards":             {"WebApp", app + "storage: {size: 1Gi, mountPath: /data/..}", []string{"spec.storage.mountPath must not hold '//', '/./' or '/../'"}},
		"devices":                    {"WebApp", app + "storage: {size: 1Gi, mountPath: /dev/shm}", []string{"spec.storage.mountPath must not be in /proc"}},
		"a path twice":               {"WebApp", app + "files: [{mountPath: /data, secretRef: {name: a}}, {mountPath: /data/, secretRef: {name: a}}]", []string{"spec.files: every mountPath must be unique"}},
		"a blank in a duration":      {"Backup", backup + "deadline: 5 min", []string{"spec.deadline: ", duration}},
		"days of a deadline":         {"Restore", restore + "deadline: 1d", []string{"spec.deadline: ", duration}},
		"a number as duration":       {"Backup", backup + "deadline: 5", []string{"spec.deadline", `must be of type string: "integer"`}},
		"a duration of a hook":       {"Backup", backup + "hooks: {before: {command: [a], timeout: 5 min}}", []string{duration}},
		"a duration of a drill":      {"Backup", backup + "verify: {drill: {deadline: 1d, schedule: '0 0 * * 0'}}", []string{"spec.verify.drill.deadline: ", duration}},
		"a duration of a rule":       {"MonitorRule", "when: 'true', for: 1d", []string{"spec.for: ", duration}},
		"a duration of a route":      {"APIGateway", routes("timeouts: {request: 1d, backend: 5 min}"), []string{"timeouts.request: ", "timeouts.backend: ", duration}},
		"a duration of a limit":      {"APIGateway", routes("rateLimit: {requests: 1, period: 1d}"), []string{"rateLimit.period: ", duration}},
		"a duration of a check":      {"APIGateway", routes("auth: {external: {backendService: {name: a, port: 1}, timeout: 5 min}}"), []string{"auth.external.timeout: ", duration}},
		"a duration of a policy":     {"GatewayPolicy", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}], defaults: {rateLimit: {requests: 1, period: 1d}}", []string{"rateLimit.period: ", duration}},
		"a session":                  {"APIGateway", routes("auth: {oidc: {issuer: 'https://a.example.com', clientID: a, clientSecretRef: {name: a, key: b}, sessionLength: 1d}}"), []string{"auth.oidc.sessionLength must be from 1m to 24h"}},
		"a time":                     {"Restore", restore + "asOf: yesterday", []string{"spec.asOf", "must be of type date-time"}},
		"an address":                 {"GatewayPolicy", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: a}], defaults: {clientAddresses: {allow: [office.example.com]}}", []string{"an address must be like 10.0.0.7"}},
		"an issuer":                  {"APIGateway", routes("auth: {oidc: {issuer: 'a.example.com', clientID: a, clientSecretRef: {name: A, key: b}, scopes: ['a b']}}"), []string{"auth.oidc.issuer must be an http or https address", "name must be a DNS subdomain", "a scope must hold only"}},
		"a name of a stream":         {"APIGateway", "streams: [{name: Redis, protocol: TCP, port: 6379, backends: [{name: Redis, port: 6379}]}]", []string{"the name of a stream must start with a letter", "the name of a Service must start with a letter"}},
		"names of a certificate":     {"APIGateway", "backendPolicies: [{name: a, port: 1, tls: {hostname: 'a:1', subjectAltNames: ['A']}}]", []string{"tls.hostname must be a lower case DNS name", "an alternative name must be"}},
		"a path of a redirect":       {"APIGateway", "routes: [{redirect: {pathPrefix: people}}]", []string{"redirect.pathPrefix must start with '/'"}},
		"a header with the colon":    {"APIGateway", "routes: [{backends: [{name: a, port: 1, requestHeaders: {remove: ['X-A:']}}]}]", []string{"a header name must hold only letters"}},
		"a page of another language": {"APIGateway", routes("compression: {contentTypes: ['text/html; charset=utf-8']}"), []string{"a content type must be like text/html"}},
	}
	// What a rule says beside a pattern comes with the pattern.
	withPattern := map[string]bool{"a header with the colon": true, "a page of another language": true}
	namespace := env.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, namespace, object(tc.kind, tc.spec))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("the answer is %v", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the answer is %v, want one that says %q", err, want)
				}
			}
			if found := unreadable.FindString(err.Error()); found != "" && !withPattern[name] {
				t.Errorf("the answer says %q: %v", found, err)
			}
		})
	}
}

// No rule is asked about a list where a map is expected. This is what a user of kubectl sees, and of a client that asks for no
// check of fields; docs/spec/webapp.md says so.
func TestVariablesAreNoList(t *testing.T) {
	namespace := env.Namespace(t)
	app := object("WebApp", "image: 'shop:1', port: 80, env: [{name: A, value: b}]")
	_, err := create(t, namespace, app)
	if want := `strict decoding error: unknown field "spec.env[0].name", unknown field "spec.env[0].value"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v, want one that says %q", err, want)
	}
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(app), &made.Object); err != nil {
		t.Fatal(err)
	}
	made.SetNamespace(namespace)
	err = env.Client.Create(t.Context(), made)
	if want := `spec.env in body must be of type object: "array"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v, want one that says %q", err, want)
	}
}
