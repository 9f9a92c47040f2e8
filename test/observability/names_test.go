package observability

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/hack/metricsdoc/defined"
	"github.com/slipway-dev/slipway/internal/metric"
)

// foreign are the metrics of others that rules, dashboards and docs/metrics.md may ask for, and who makes them. The
// end-to-end test shows that they are there.
var foreign = map[string]string{
	"up":     "Prometheus, of every target",
	"ALERTS": "Prometheus, of every alert that fires or is about to",

	"leader_election_master_status":                                      "client-go, with --leader-elect",
	"rest_client_requests_total":                                         "client-go",
	"workqueue_depth":                                                    "controller-runtime",
	"workqueue_longest_running_processor_seconds":                        "controller-runtime",
	"workqueue_queue_duration_seconds_bucket":                            "controller-runtime",
	"controller_runtime_active_workers":                                  "controller-runtime",
	"controller_runtime_reconcile_total":                                 "controller-runtime",
	"controller_runtime_reconcile_errors_total":                          "controller-runtime",
	"controller_runtime_reconcile_timeouts_total":                        "controller-runtime",
	"controller_runtime_reconcile_panics_total":                          "controller-runtime",
	"controller_runtime_reconcile_time_seconds_bucket":                   "controller-runtime",
	"controller_runtime_webhook_requests_total":                          "controller-runtime, with --webhook-port",
	"controller_runtime_client_consistency_wait_duration_seconds_bucket": "controller-runtime",

	"go_goroutines":                 "Go",
	"process_cpu_seconds_total":     "Prometheus' client library",
	"process_max_fds":               "Prometheus' client library",
	"process_open_fds":              "Prometheus' client library",
	"process_resident_memory_bytes": "Prometheus' client library",
	"process_start_time_seconds":    "Prometheus' client library",
}

// targetLabels are those that the scrape configuration adds.
var targetLabels = []string{"job", "instance", "namespace", "pod", "apigateway"}

// ours returns the series of the metrics that the programs define, with their labels.
func ours() map[string][]string {
	series := map[string][]string{}
	for _, definitions := range defined.BySection() {
		for _, d := range definitions {
			labels := slices.Concat(d.Labels, targetLabels)
			if d.Type != metric.Histogram {
				series[d.Name] = labels
				continue
			}
			series[d.Name+"_bucket"] = append([]string{"le"}, labels...)
			series[d.Name+"_sum"], series[d.Name+"_count"] = labels, labels
		}
	}
	return series
}

func TestQueriesAskForMetricsThatThereAre(t *testing.T) {
	known, used, recorded := ours(), map[string]bool{}, map[string]bool{}
	for _, r := range loadRules(t) {
		if r.Record != "" {
			recorded[r.Record] = true
		}
	}
	for _, q := range queries(t) {
		found, err := selectorsOf(q.expr)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: no metric in %q: %v", q.where, q.expr, err)
		}
		for _, s := range found {
			used[s.metric] = true
			labels, is := known[s.metric]
			switch {
			case is:
				for _, label := range s.labels {
					if !slices.Contains(labels, label) {
						t.Errorf("%s: %s has no label %s", q.where, s.metric, label)
					}
				}
			case !recorded[s.metric] && foreign[s.metric] == "":
				t.Errorf("%s: hack/metricsdoc knows no metric %s, no rule records it, and it is not on the list of those of others", q.where, s.metric)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if !used[name] {
			t.Errorf("nobody asks for the recorded %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		if !used[name] {
			t.Errorf("nobody asks for %s, which is on the list of the metrics of others", name)
		}
	}
}

// What is measured is worth being shown.
func TestEveryMetricOfOursIsInARuleOrADashboard(t *testing.T) {
	var all []string
	for _, q := range queries(t) {
		if strings.HasPrefix(q.where, "docs/") {
			continue
		}
		found, err := selectorsOf(q.expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			all = append(all, s.metric)
		}
	}
	for _, definitions := range defined.BySection() {
		for _, d := range definitions {
			if !slices.ContainsFunc(all, func(name string) bool { return name == d.Name || name == d.Name+"_bucket" }) {
				t.Errorf("no rule and no dashboard shows %s", d.Name)
			}
		}
	}
}
