package proxy

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// compileGroups makes a table of rules for the same Service. Each has the settings of its path.
func compileGroups(t *testing.T, address string, groups map[string]*model.BackendSettings) *table.Table {
	t.Helper()
	var rules []table.Rule
	for path, settings := range groups {
		rules = append(rules, table.Rule{Name: path, Path: path, Settings: list.Settings{BackendSettings: settings}, Backends: []model.BackendRef{backendTo("app")}})
	}
	return compileRules(t, table.Input{Rules: rules}, map[string]string{"app": address})
}

func TestAFullGroupLeavesOtherRulesOfTheServiceAlone(t *testing.T) {
	hold, arrived := make(chan struct{}), make(chan struct{}, 10)
	release := sync.OnceFunc(func() { close(hold) })
	backend := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/full/hold" {
			arrived <- struct{}{}
			<-hold
		}
	})
	t.Cleanup(release)
	one := &model.BackendSettings{Group: "one", Limits: model.Limits{Connections: 1, Requests: 1}}
	groups := map[string]*model.BackendSettings{
		"/full": one, "/same": one, "/none": nil,
		"/two": {Group: "two", Limits: model.Limits{Connections: 1, Requests: 1}},
	}
	g := startTable(t, Options{}, compileGroups(t, backend, groups))
	var wait sync.WaitGroup
	wait.Go(func() {
		response, _ := g.get("/full/hold")
		want(t, "the first", response.StatusCode, 200)
	})
	<-arrived
	for path, code := range map[string]int{"/full": 503, "/same": 503, "/two": 200, "/none": 200} {
		response, _ := g.get(path)
		want(t, path, response.StatusCode, code)
	}
	// The limit of a group changes while its request is under way. It is the same backend, so the request still counts.
	groups["/full"] = &model.BackendSettings{Group: "one", Limits: model.Limits{Connections: 2, Requests: 2}}
	groups["/same"] = groups["/full"]
	g.handler.Set(Config{Table: compileGroups(t, backend, groups)})
	want(t, "under way", g.handler.registry.Service("shop/app:80//one", nil).Requests(), 1)
	response, _ := g.get("/same")
	want(t, "after the change", response.StatusCode, 200)
	release()
	wait.Wait()
}

func TestChecksOfAGroupKeepNobodyElseAway(t *testing.T) {
	app := newPatient(t, 503)
	clock := testingclock.NewFakeClock(time.Now())
	registry := prometheus.NewPedanticRegistry()
	check := func(name string) *model.BackendSettings {
		return &model.BackendSettings{Group: name, Limits: model.DefaultLimits(), HealthCheck: &model.HealthCheck{Path: "/healthz", Period: time.Second, Timeout: 10 * time.Second, Healthy: 1, Unhealthy: 1}}
	}
	groups := map[string]*model.BackendSettings{"/a": check("a"), "/b": check("b"), "/none": nil}
	g := startTable(t, Options{Clock: clock, Metrics: registry}, compileGroups(t, app.address, groups))
	unhealthy := func() (sum int) {
		for _, of := range g.handler.BackendStates() {
			sum += of.Unhealthy
		}
		return sum
	}
	eventually(t, "both groups find it unhealthy", func() bool { clock.Step(100 * time.Millisecond); return unhealthy() == 2 })
	states := g.handler.BackendStates()
	if len(states) != 1 || states[0].Service != "shop/app" || states[0].Port != 80 || states[0].Available != 1 {
		t.Errorf("states %+v, want one port that the rule without checks may use", states)
	}
	const failed = "slipway_gateway_health_checks_total 80 error shop/app"
	want(t, "checks are counted", series(t, registry)[failed] >= 2, true)

	// The other group is still checked, so what was counted stays.
	delete(groups, "/b")
	g.handler.Set(Config{Table: compileGroups(t, app.address, groups)})
	want(t, "checks are still counted", series(t, registry)[failed] >= 2, true)
	groups["/a"] = nil
	g.handler.Set(Config{Table: compileGroups(t, app.address, groups)})
	for name := range series(t, registry) {
		if strings.Contains(name, "health_checks") {
			t.Errorf("left of checks that are no more: %s", name)
		}
	}
}
