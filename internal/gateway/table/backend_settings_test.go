package table_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// toWeb is a rule whose backend and mirror are the same port.
func toWeb(path string, own *model.BackendSettings) table.Rule {
	return table.Rule{
		Path: path, Settings: list.Settings{BackendSettings: own},
		Backends: []model.BackendRef{{Service: "web", Port: 80, Weight: 1}},
		Mirrors:  []model.MirrorRef{{Service: "web", Port: 80, Numerator: 1, Denominator: 1}},
	}
}

func TestRulesOfAGroupShareTheirBackendsAndOthersKeepTheirOwn(t *testing.T) {
	name := model.BackendName{ServiceName: model.ServiceName{Name: "web"}, Port: 80}
	check := &model.HealthCheck{Path: "/ok", Period: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 1}
	few := &model.BackendSettings{Group: "a/b", Limits: model.Limits{Connections: 1, Requests: 1}, HealthCheck: check}
	same := *few
	other := &model.BackendSettings{Group: "b", Limits: model.Limits{Connections: 2, Requests: 2}}
	rules := []table.Rule{toWeb("/none", nil), toWeb("/few", few), toWeb("/same", &same), toWeb("/other", other)}
	for i := range rules {
		rules[i].Index = i
	}
	grpc := model.ProtocolGRPC
	compiled, problems := oneListener(table.Input{
		Services: everywhere(), Rules: rules,
		Settings: map[model.BackendName]model.Settings{name: {Protocol: &grpc}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := map[string]string{}
	for path, want := range map[string]struct {
		limits model.Limits
		check  *model.HealthCheck
	}{
		"/none": {model.DefaultLimits(), nil}, "/few": {few.Limits, check}, "/same": {few.Limits, check}, "/other": {other.Limits, nil},
	} {
		route := compiled.Match(&table.Request{Method: "GET", Path: path})
		b := route.Backends[0].Backend
		got[path] = b.ID
		if b != route.Mirrors[0].Backend {
			t.Errorf("%s: copies go to %s", path, route.Mirrors[0].Backend.ID)
		}
		if b.Limits != want.limits || b.HealthCheck != want.check || b.Protocol != grpc || len(b.Endpoints) == 0 || b.ServiceName() != "web" {
			t.Errorf("%s: got %+v", path, b)
		}
	}
	want := map[string]string{"/none": "web:80", "/few": "web:80//a/b", "/same": "web:80//a/b", "/other": "web:80//b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConnectionsThatAreNotReadHaveLimitsAndNoChecks(t *testing.T) {
	rule := table.Rule{
		Transport: model.TransportTCP, Backends: []model.BackendRef{{Service: "web", Port: 80, Weight: 1}},
		Settings: list.Settings{BackendSettings: &model.BackendSettings{Group: "a", Limits: model.Limits{Connections: 1, Requests: 1}, HealthCheck: &model.HealthCheck{Path: "/", Period: 1, Timeout: 1, Healthy: 1, Unhealthy: 1}}},
	}
	compiled, problems := table.Compile(table.Input{Listeners: []table.Listener{{Port: 1, Transport: model.TransportTCP}}, Services: everywhere(), Rules: []table.Rule{rule}})
	if len(problems) > 0 || len(compiled.Backends) != 1 {
		t.Fatalf("%+v, %v", compiled.Backends, problems)
	}
	if b := compiled.Backends[0]; b.ID != "web:80/tcp//a" || b.HealthCheck != nil || b.Limits.Connections != 1 {
		t.Errorf("got %+v", b)
	}
}

func TestARuleWithWrongBackendSettingsIsNotServed(t *testing.T) {
	good := model.Limits{Connections: 1, Requests: 1}
	for want, own := range map[string]*model.BackendSettings{
		"backends: the group has no name": {Limits: good},
		"backends: maxConnections and maxRequests must be at least 1, maxPendingRequests at least 0": {Group: "a"},
		`backends.healthCheck: path: "x" cannot be a path: the path does not begin with a slash`:     {Group: "a", Limits: good, HealthCheck: &model.HealthCheck{Path: "x"}},
	} {
		compiled, problems := oneListener(table.Input{Services: everywhere(), Rules: []table.Rule{toWeb("/", own)}})
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("problems %v, want %q", problems, want)
		}
		if route := compiled.Match(&table.Request{Method: "GET", Path: "/"}); route == nil || route.Unavailable == nil || len(compiled.Backends) > 0 {
			t.Errorf("%s: it is served: %+v", want, route)
		}
	}
}
