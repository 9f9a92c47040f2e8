//go:build observability

package observability

import (
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// later are selectors of series that appear later than in this test, and why.
var later = map[string]string{
	`ALERTS{alertname=~"Slipway.*",alertstate="firing",severity=~"critical|warning"}`:             "most alerts want trouble to last for minutes; the one that fires here at once is information",
	`rest_client_requests_total{code!~"2..",job="slipway-operator",namespace=~".*"}`:              "until a request to the API server is refused",
	`rest_client_requests_total{code=~"5..|429|<error>",job="slipway-operator"}`:                  "until the API server fails",
	`slipway_backup_drill_passed{job="slipway-operator"}`:                                         "until a drill has ended",
	`slipway_backup_drill_passed{}`:                                                               "the same",
	`slipway_backup_drill_failures_total{job="slipway-operator",namespace=~".*"}`:                 "the same",
	`slipway_backup_drill_last_success_timestamp_seconds{job="slipway-operator",namespace=~".*"}`: "the same",
	`slipway_backup_drill_last_success_timestamp_seconds{}`:                                       "the same",
	`slipway_monitor_store_trouble{job="slipway-monitor"}`:                                        "until the store takes no changes",
	`slipway_monitor_store_trouble{job="slipway-monitor",namespace=~".*"}`:                        "the same",
	`slipway_monitor_store_trouble{}`:                                                             "the same",
	`slipway_monitor_kind_lag_seconds{job="slipway-monitor",namespace=~".*"}`:                     "until a change has to wait",
	// The gateways of this test run from a file, which has no streams, and they have no replicas to count with.
	`slipway_gateway_streams_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:                           "until a stream has ended",
	`slipway_gateway_stream_bytes_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:                      "the same",
	`slipway_gateway_datagrams_dropped_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:                 "until a datagram is dropped",
	`slipway_gateway_shared_limit_lease_requests_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:       "while replicas share a limit",
	`slipway_gateway_shared_limit_rejected_connections_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`: "the same",
	`slipway_gateway_shared_limit_replicas{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:                   "the same",
	`slipway_gateway_shared_limit_requests_total{apigateway=~".*",job="slipway-gateway",namespace=~".*"}`:             "the same",
}

func TestPromtool(t *testing.T) {
	promtool := tool(t, "PROMTOOL")
	for _, arguments := range [][]string{
		append([]string{"check", "rules"}, filesIn(t, "rules/*.yaml")...),
		// Its token is only there in a pod. That Prometheus starts with the rest is for another test.
		{"check", "config", "--syntax-only", filepath.Join(folder, "prometheus.yaml")},
		{"check", "config", filepath.Join(folder, "prometheus-static.yaml")},
		append([]string{"test", "rules"}, filesIn(t, "tests/*.yaml")...),
	} {
		out, err := exec.CommandContext(t.Context(), promtool, arguments...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}

func TestEveryQueryWithTheRealPrograms(t *testing.T) {
	c := startCluster(t)
	programs := ports{operators: startOperators(t, c), gateways: startGateways(t)}
	startMonitor(t, c)
	for i, port := range programs.gateways {
		c.standIn(t, "shop", fmt.Sprintf("edge-%d", i), c.gatewayTemplate(t, "shop", "edge"), "admin", port)
	}
	t.Run("static", func(t *testing.T) { scrapeStatically(t, c, programs) })
	t.Run("discovered", func(t *testing.T) { askEverything(t, c) })
}

// scrapeStatically shows that the example for addresses that are written down is right, but for the addresses.
func scrapeStatically(t *testing.T, c *cluster, programs ports) {
	p := startPrometheus(t, "prometheus-static.yaml", func(config map[string]any) {
		// These operators ask the API server who wants their metrics, and the example is about one that does not.
		operators := config["scrape_configs"].([]any)[0].(map[string]any)
		operators["scheme"], operators["tls_config"] = "https", map[string]any{"insecure_skip_verify": true}
		operators["authorization"] = map[string]any{"credentials_file": c.token}
		for i, job := range config["scrape_configs"].([]any) {
			static := job.(map[string]any)["static_configs"].([]any)[0].(map[string]any)
			static["targets"] = []string{at([][]int{programs.operators, programs.gateways}[i][0])}
		}
	})
	eventually(t, time.Minute, func() error { return p.healthy(2) })
	eventually(t, time.Minute, func() error { return p.rulesWork(len(loadRules(t))) })
	// The alerts of a gateway name it by these labels.
	for _, selector := range []string{`slipway_gateway_generation{job="slipway-gateway",namespace="default",apigateway="edge"}`, `slipway_webapp_apps{job="slipway-operator",namespace="slipway-system"}`} {
		if is, err := p.exists(selector); !is || err != nil {
			t.Errorf("there is no %s: %v", selector, err)
		}
	}
}

// askEverything finds the programs as in a cluster, and asks all that rules, dashboards and docs/metrics.md ask.
func askEverything(t *testing.T, c *cluster) {
	p := startPrometheus(t, "prometheus.yaml", func(config map[string]any) {
		for _, job := range config["scrape_configs"].([]any) {
			if authorization, is := job.(map[string]any)["authorization"].(map[string]any); is {
				authorization["credentials_file"] = c.token
			}
			for _, discovery := range job.(map[string]any)["kubernetes_sd_configs"].([]any) {
				discovery.(map[string]any)["kubeconfig_file"] = c.discovery
			}
		}
	})
	eventually(t, time.Minute, func() error { return p.healthy(5) })
	eventually(t, time.Minute, func() error { return p.rulesWork(len(loadRules(t))) })
	missing := map[string]string{} // where, by selector
	for _, q := range queries(t) {
		checkQuery(t, p, q)
		names, selectors, err := p.vectorSelectors(q.expr)
		if err != nil {
			t.Errorf("%s: %v", q.where, err)
			continue
		}
		compareSelectors(t, q, names)
		for _, selector := range selectors {
			missing[selector] = q.where
		}
	}
	for selector := range later {
		if missing[selector] == "" {
			t.Errorf("nobody asks for %s, which is on the list of what appears later", selector)
		}
	}
	// Some series need a second request or a second scrape.
	deadline := time.Now().Add(time.Minute)
	for len(missing) > 0 && time.Now().Before(deadline) {
		maps.DeleteFunc(missing, func(selector, _ string) bool {
			is, err := p.exists(selector)
			if err != nil {
				t.Fatalf("%s: %v", selector, err)
			}
			return is || later[selector] != ""
		})
	}
	for _, selector := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%s: there is no series %s", missing[selector], selector)
	}
}

// checkQuery has Prometheus answer a query, at once and for a range.
func checkQuery(t *testing.T, p *prometheus, q query) {
	t.Helper()
	var result any
	if err := p.ask("query", url.Values{"query": {q.expr}}, &result); err != nil {
		t.Errorf("%s: %v", q.where, err)
	}
	now := time.Now().Unix()
	window := url.Values{"query": {q.expr}, "start": {strconv.FormatInt(now-10, 10)}, "end": {strconv.FormatInt(now, 10)}, "step": {"5"}}
	if err := p.ask("query_range", window, &result); err != nil {
		t.Errorf("%s: %v", q.where, err)
	}
}

// compareSelectors shows that the fast check of names reads an expression as Prometheus does.
func compareSelectors(t *testing.T, q query, names []string) {
	t.Helper()
	found, err := selectorsOf(q.expr)
	if err != nil {
		t.Errorf("%s: %v", q.where, err)
	}
	var ours []string
	for _, s := range found {
		ours = append(ours, s.metric)
	}
	slices.Sort(ours)
	slices.Sort(names)
	if diff := cmp.Diff(names, ours); diff != "" {
		t.Errorf("%s: the fast check reads other metrics out of it: -Prometheus +check:\n%s", q.where, diff)
	}
}
