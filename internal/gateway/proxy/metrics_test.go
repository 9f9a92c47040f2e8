package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// series returns the metrics that are not 0, by name and label values.
func series(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			value := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
				values[name] = value
			}
		}
	}
	return values
}

// gauge returns the value of a gauge without labels.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}

func TestMetricsAreBoundedByRoutes(t *testing.T) {
	backend, _ := recording(t)
	registry := prometheus.NewPedanticRegistry()
	g := start(t, Options{Metrics: registry}, `[{name: a, path: /a, backendService: {name: app, port: 80}}, {name: none, path: /none, backendService: {name: none, port: 80}}]`, backend)
	g.get("/a")
	g.get("/a/x")
	g.get("/none")
	for i := range 50 {
		g.get("/" + strconv.Itoa(i))
	}
	wanted := map[string]float64{
		"slipway_gateway_requests_total a 2xx": 2, "slipway_gateway_requests_total - 4xx": 50, "slipway_gateway_requests_total none 5xx": 1,
		"slipway_gateway_request_duration_seconds a": 2, "slipway_gateway_request_duration_seconds -": 50, "slipway_gateway_request_duration_seconds none": 1,
		"slipway_gateway_upstream_errors_total no_endpoints none": 1,
	}
	eventually(t, "all is counted", func() bool { return cmp.Equal(wanted, series(t, registry)) })
	before := g.handler.current.Load()
	g.handler.Set(Config{Table: compile(t, `[{name: a, path: /a, backendService: {name: app, port: 80}}]`, nil, backend)})
	// A request fails that was in flight.
	before.metrics[1].Failed(upstream.Reset)
	for name := range series(t, registry) {
		if strings.Contains(name, "none") {
			t.Errorf("left of a route that is no more: %s", name)
		}
	}
}

// Prometheus sees no increase in the first value of a series. A series that starts at 100 hides
// its first 100 failures.
func TestFailuresOfARouteAreCountedFromZero(t *testing.T) {
	backend, _ := recording(t)
	registry := prometheus.NewPedanticRegistry()
	g := start(t, Options{Metrics: registry}, `[{name: a, path: /a, backendService: {name: app, port: 80}}, {name: b, path: /b, backendService: {name: app, port: 80}}]`, backend)
	kinds := func() map[string][]string {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string][]string{}
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "slipway_gateway_upstream_errors_total" && m.GetCounter().GetValue() == 0 {
					route := m.GetLabel()[1].GetValue()
					kinds[route] = append(kinds[route], m.GetLabel()[0].GetValue())
				}
			}
		}
		return kinds
	}
	// One more costs 1,000 series in each pod of a gateway with 1,000 routes.
	all := []string{"connect", "max_connections", "max_pending_requests", "max_requests", "timeout"}
	if diff := cmp.Diff(map[string][]string{"a": all, "b": all}, kinds()); diff != "" {
		t.Errorf("counted from 0 (-want +got):\n%s", diff)
	}
	g.handler.Set(Config{Table: compile(t, `[{name: a, path: /a, backendService: {name: app, port: 80}}]`, nil, backend)})
	if diff := cmp.Diff(map[string][]string{"a": all}, kinds()); diff != "" {
		t.Errorf("when a route has gone (-want +got):\n%s", diff)
	}
}

func TestRetriesAreCountedByRoute(t *testing.T) {
	flaky := map[string]*atomic.Int64{"/once": new(atomic.Int64), "/twice": new(atomic.Int64)}
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fails := map[string]int64{"/once": 1, "/twice": 2}
		if n := flaky[r.URL.Path]; n == nil || n.Add(1) <= fails[r.URL.Path] {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	registry := prometheus.NewPedanticRegistry()
	clock := testingclock.NewFakeClock(time.Now()) // so the retry budget does not grow
	const retries = `retries: {attempts: 3, retryOn: ["503"]}, backendService: {name: app, port: 80}`
	g := start(t, Options{Metrics: registry, Clock: clock, Upstream: upstream.Options{Backoff: upstream.Backoff{Base: 1, Max: 1}}}, `
- {name: once, path: /once, `+retries+`}
- {name: twice, path: /twice, `+retries+`}
- {name: never, path: /never, `+retries+`}
- {name: plain, path: /plain, retries: {attempts: 0}, backendService: {name: app, port: 80}}`, backend)
	counted := func(name string) map[string]float64 {
		values := map[string]float64{}
		for series, value := range series(t, registry) {
			if route, is := strings.CutPrefix(series, name+" "); is {
				values[route] = value
			}
		}
		return values
	}
	for path, status := range map[string]int{"/once": 200, "/twice": 200, "/never": 503, "/plain": 503} {
		response, _ := g.get(path)
		want(t, path, response.StatusCode, status)
	}
	wanted := map[string]float64{"once": 1, "twice": 2, "never": 3}
	if diff := cmp.Diff(wanted, counted("slipway_gateway_retries_total")); diff != "" {
		t.Errorf("retries (-want +got):\n%s", diff)
	}
	if got := counted("slipway_gateway_retry_budget_exhausted_total"); len(got) != 0 {
		t.Errorf("the budget is said to be exhausted: %v", got)
	}
	for range 100 {
		g.get("/never")
	}
	if got := counted("slipway_gateway_retries_total")["never"]; got < 115 || got > 118 {
		t.Errorf("%v retries, where 100 are saved up and 20 earned, and other routes had 3", got)
	}
	if got := counted("slipway_gateway_retry_budget_exhausted_total"); len(got) != 1 || got["never"] < 50 || got["never"] > 100 {
		t.Errorf("the budget is exhausted for %v", got)
	}
	g.handler.Set(Config{Table: compile(t, toApp, nil, backend)})
	for name := range series(t, registry) {
		if strings.Contains(name, "never") {
			t.Errorf("left of a route that is no more: %s", name)
		}
	}
}

func TestFetchesOfPublicKeysAreCounted(t *testing.T) {
	issuer := newIssuer(t)
	registry := prometheus.NewPedanticRegistry()
	backend := serve(t, func(http.ResponseWriter, *http.Request) {})
	g := start(t, Options{Metrics: registry}, fromURL(issuer.serve().URL), backend)
	fetches := func(result string) float64 { return series(t, registry)["slipway_gateway_jwks_fetches_total "+result] }
	eventually(t, "a fetch that failed is counted", func() bool { return fetches("error") == 1 })
	want(t, "good fetches", fetches("ok"), 0.0)
	issuer.publish()
	eventually(t, "a fetch is counted", func() bool {
		g.get("/", "Authorization", "Bearer "+issuer.token(nil))
		return fetches("ok") == 1
	})
}
