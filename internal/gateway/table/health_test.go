package table_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// healthChecks parses health checks as a user writes them.
func healthChecks(t *testing.T, text string) []slipwayv1alpha1.BackendHealthCheck {
	t.Helper()
	var parsed []slipwayv1alpha1.BackendHealthCheck
	if err := yaml.UnmarshalStrict([]byte(text), &parsed); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return parsed
}

func TestAHealthCheckBelongsToAPortOfAService(t *testing.T) {
	plain := &model.HealthCheck{Path: "/", Period: 10 * time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 3}
	for name, tc := range map[string]struct {
		checks string
		want   map[string]*model.HealthCheck
	}{
		"none":     {`[]`, map[string]*model.HealthCheck{}},
		"defaults": {`[{name: users, port: 8080}]`, map[string]*model.HealthCheck{"users:8080": plain}},
		"every field": {
			`[{name: chat, port: 9000, path: /healthz/a%20b, host: chat.example.com, periodSeconds: 5, timeoutSeconds: 2, healthyThreshold: 3, unhealthyThreshold: 4}]`,
			map[string]*model.HealthCheck{"chat:9000": {
				Path: "/healthz/a%20b", Host: "chat.example.com", Period: 5 * time.Second, Timeout: 2 * time.Second, Healthy: 3, Unhealthy: 4,
			}},
		},
		"a Service without endpoints": {`[{name: idle, port: 8080}]`, map[string]*model.HealthCheck{"idle:8080": plain}},
		"a mirror":                    {`[{name: copy, port: 80}]`, map[string]*model.HealthCheck{"copy:80": plain}},
		"what no route names":         {`[{name: gone, port: 80}, {name: users, port: 9999}]`, map[string]*model.HealthCheck{}},
	} {
		t.Run(name, func(t *testing.T) {
			compiled, problems := apiroutes.Compile(apiroutes.Input{Services: services(), HealthChecks: healthChecks(t, tc.checks), Routes: routes(t, `
- {path: /users, backendService: {name: users, port: 8080}, mirror: {backendService: {name: copy, port: 80}, percent: 0}}
- {path: /again, backendService: {name: users, port: 8080}}
- {path: /rest, backends: [{name: chat, port: 9000}, {name: idle, port: 8080, weight: 0}]}`)})
			for _, p := range problems {
				if p.Index < 0 {
					t.Errorf("problem: %+v", p)
				}
			}
			got := map[string]*model.HealthCheck{}
			for _, backend := range compiled.Backends {
				if backend.HealthCheck != nil {
					got[backend.ID] = backend.HealthCheck
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestABadHealthCheckIsNamedAndNotMade(t *testing.T) {
	for name, tc := range map[string]struct {
		check, reason, message string
	}{
		"path":                {`path: healthz`, "Invalid", `path: "healthz" cannot be a path: the path does not begin with a slash`},
		"path with a query":   {`path: "/a?b=c"`, "Invalid", `path: "/a?b=c" cannot be a path: the path holds a character that does not belong there`},
		"host":                {`host: "*.example.com"`, "Invalid", `host: "*.example.com" is not a lower case DNS name`},
		"no period":           {`periodSeconds: 0`, "Invalid", "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"},
		"negative timeout":    {`timeoutSeconds: -1`, "Invalid", "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"},
		"healthy threshold":   {`healthyThreshold: 0`, "Invalid", "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"},
		"unhealthy threshold": {`unhealthyThreshold: 0`, "Invalid", "periodSeconds, timeoutSeconds, healthyThreshold and unhealthyThreshold must be at least 1"},
		"a later field":       {``, "ImageIncompatible", "statuses: this version of the gateway does not know the field"},
	} {
		t.Run(name, func(t *testing.T) {
			in := apiroutes.Input{
				Services: services(), Routes: routes(t, `[{backends: [{name: users, port: 8080}, {name: chat, port: 9000}]}]`),
				HealthChecks: healthChecks(t, `[{name: users, port: 8080, `+tc.check+`}, {name: chat, port: 9000}]`),
			}
			if tc.reason == slipwayv1alpha1.ReasonImageIncompatible {
				in.UnknownChecks = map[int]string{0: "statuses"}
			}
			compiled, problems := apiroutes.Compile(in)
			want := []model.Problem{{Index: -1, List: "healthChecks", Route: "users:8080", Reason: tc.reason, Message: tc.message}}
			if diff := cmp.Diff(want, problems); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, backend := range compiled.Backends {
				if made := backend.HealthCheck != nil; made != (backend.ID == "chat:9000") {
					t.Errorf("%s: a check is made: %v", backend.ID, made)
				}
			}
			if backend, _ := compiled.Routes[0].Pick(0); backend == nil {
				t.Error("a route is down for a health check")
			}
		})
	}
}

func TestTheFirstOfTwoHealthChecksCounts(t *testing.T) {
	compiled, problems := apiroutes.Compile(apiroutes.Input{
		Services: services(), Routes: routes(t, `[{backendService: {name: users, port: 8080}}]`),
		HealthChecks: healthChecks(t, `[{name: users, port: 8080, path: /first}, {name: users, port: 8080, path: /second}]`),
	})
	if len(problems) != 1 || problems[0].Reason != slipwayv1alpha1.ReasonInvalid || compiled.Backends[0].HealthCheck.Path != "/first" {
		t.Errorf("got %+v and problems %+v", compiled.Backends[0].HealthCheck, problems)
	}
}
