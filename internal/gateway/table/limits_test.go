package table_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// plainLimits are the limits of a backend without a policy.
var plainLimits = model.Limits{Connections: 4096, Pending: 1024, Requests: 8192}

// withPolicies compiles two routes with policies.
func withPolicies(t *testing.T, text string, unknown map[int]string) (map[string]*model.Backend, []model.Problem) {
	t.Helper()
	var parsed []slipwayv1alpha1.BackendPolicy
	if err := yaml.UnmarshalStrict([]byte(text), &parsed); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	known := services()
	known["odd"] = model.Service{Ports: map[int32]model.ServicePort{80: {AppProtocol: "mysql", Endpoints: []string{"10.0.0.9:80"}}}}
	known["rpc"] = model.Service{Ports: map[int32]model.ServicePort{80: {AppProtocol: "grpc", Endpoints: []string{"10.0.0.9:80"}}}}
	compiled, problems := apiroutes.Compile(apiroutes.Input{
		Services: known, BackendPolicies: parsed, UnknownPolicies: unknown,
		Routes: routes(t, `[{backends: [{name: users, port: 8080}, {name: chat, port: 9000}, {name: odd, port: 80}, {name: rpc, port: 80}]}]`),
	})
	backends := map[string]*model.Backend{}
	for _, backend := range compiled.Backends {
		backends[backend.ID] = backend
	}
	return backends, problems
}

func TestAPolicyBelongsToAPortOfAService(t *testing.T) {
	backends, problems := withPolicies(t, `
- {name: users, port: 8080, protocol: GRPC, maxConnections: 1, maxPendingRequests: 0, maxRequests: 2}
- {name: chat, port: 9000, protocol: HTTP1, maxRequests: 5}
- {name: odd, port: 80, protocol: H2C}
- {name: unused, port: 80}
`, nil)
	if len(problems) > 0 {
		t.Errorf("problems %v", problems)
	}
	for id, want := range map[string]model.Backend{
		"users:8080": {Protocol: model.ProtocolGRPC, Limits: model.Limits{Connections: 1, Requests: 2}},
		"chat:9000":  {Protocol: model.ProtocolHTTP1, Limits: model.Limits{Connections: 4096, Pending: 1024, Requests: 5}},
		"odd:80":     {Protocol: model.ProtocolH2C, Limits: plainLimits},
		"rpc:80":     {Protocol: model.ProtocolGRPC, Limits: plainLimits}, // from its appProtocol
	} {
		if got := backends[id]; got.Protocol != want.Protocol || got.Limits != want.Limits || len(got.Endpoints) == 0 {
			t.Errorf("%s: got %+v", id, got)
		}
	}
}

func TestABadPolicyIsNamedAndNotFollowed(t *testing.T) {
	for name, tc := range map[string]struct {
		policies string
		unknown  map[int]string
		reason   string
		message  string
	}{
		"protocol":       {`[{name: users, port: 8080, protocol: SPDY, maxRequests: 1}]`, nil, "Invalid", `protocol: "SPDY" is not one of HTTP1, H2C and GRPC`},
		"no connections": {`[{name: users, port: 8080, maxConnections: 0}]`, nil, "Invalid", "must be at least 1"},
		"no requests":    {`[{name: users, port: 8080, maxRequests: -1}]`, nil, "Invalid", "must be at least 1"},
		"negative wait":  {`[{name: users, port: 8080, maxPendingRequests: -1}]`, nil, "Invalid", "at least 0"},
		"a later field":  {`[{name: users, port: 8080, maxRequests: 1}]`, map[int]string{0: "outlier"}, "ImageIncompatible", "outlier: this version of the gateway does not know the field"},
	} {
		t.Run(name, func(t *testing.T) {
			backends, problems := withPolicies(t, tc.policies, tc.unknown)
			if backends["users:8080"].Limits != plainLimits || backends["users:8080"].Protocol != model.ProtocolHTTP1 {
				t.Errorf("got %+v", backends["users:8080"])
			}
			if len(problems) == 0 {
				t.Fatal("no problem")
			}
			p := problems[0]
			if p.Index != -1 || p.List != "backendPolicies" || p.Route != "users:8080" || p.Reason != tc.reason || !strings.Contains(p.Message, tc.message) {
				t.Errorf("got %+v", p)
			}
		})
	}
	backends, problems := withPolicies(t, `[{name: users, port: 8080, maxRequests: 1}, {name: users, port: 8080, maxRequests: 2}]`, nil)
	if len(problems) == 0 || backends["users:8080"].Limits.Requests != 1 {
		t.Errorf("got %+v, problems %v", backends["users:8080"], problems)
	}
}

func TestIdleIsARoutesOwnOrNot(t *testing.T) {
	compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, `
- {name: plain}
- {name: never, timeouts: {idle: 0s}}
- {name: short, timeouts: {idle: 10s}}
`))})
	for i, want := range []model.Timeouts{{}, {IdleSet: true}, {Idle: 10 * time.Second, IdleSet: true}} {
		if got := compiled.Routes[i].Timeouts; got.Idle != want.Idle || got.IdleSet != want.IdleSet {
			t.Errorf("%s: got %+v", compiled.Routes[i].Name, got)
		}
	}
}
