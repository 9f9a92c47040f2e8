package rule

import (
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// shipped are the rules that come with the monitor, by their names.
func shipped(t *testing.T) map[string]*Rule {
	t.Helper()
	raw, err := os.ReadFile("../../../config/monitor/rules/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]*Rule{}
	for _, document := range strings.Split(string(raw), "\n---\n") {
		var m slipwayv1alpha1.MonitorRule
		if err := yaml.UnmarshalStrict([]byte(document), &m); err != nil {
			t.Fatal(err)
		}
		m.UID = "rule-1"
		rules[m.Name] = compileFull(t, &m)
	}
	return rules
}

func TestShippedRules(t *testing.T) {
	writes := func(n int, every time.Duration, by, path string) func(*world) {
		return func(w *world) {
			for i := range n {
				w.write(good, strings.Split(by, ",")[i%len(strings.Split(by, ","))], path)
				w.pass(every)
			}
		}
	}
	does := func(state health.State, reason string, stays time.Duration) func(*world) {
		return func(w *world) {
			w.verd = health.Verdict{State: state, Reason: reason}
			w.write(`{}`, "x")
			w.pass(stays)
			w.verd = health.Verdict{State: health.Healthy}
			w.write(good, "x")
		}
	}
	deleted := func(after time.Duration) func(*world) {
		return func(w *world) {
			w.write(`{"metadata":{"deletionTimestamp":"2026-11-01T12:00:00Z","finalizers":["a/b"]}}`, "x")
			w.pass(after)
			w.remove()
		}
	}
	cases := map[string]struct{ fires, quiet func(*world) }{
		"object-failed":  {does(health.Failed, "Broken", 6*time.Minute), does(health.Failed, "Broken", 4*time.Minute)},
		"no-status":      {does(health.Unknown, health.ReasonNoStatus, 6*time.Minute), does(health.Unknown, health.ReasonHasNoStatus, time.Hour)},
		"deletion-stuck": {deleted(16 * time.Minute), deleted(14 * time.Minute)},
		"flapping":       {writes(25, 10*time.Second, "x", ".status.phase"), writes(100, time.Minute, "x", ".status.phase")},
		"managers-fight": {writes(12, 10*time.Second, "a,b", ".spec.replicas"), writes(50, 10*time.Second, "a", ".spec.replicas")},
	}
	rules := shipped(t)
	if len(rules) != len(cases) {
		t.Errorf("there are %d rules, and %d are tried", len(rules), len(cases))
	}
	for name, test := range cases {
		r := rules[name]
		if r == nil {
			t.Errorf("there is no rule %s", name)
			continue
		}
		w := newWorld(t, r)
		test.fires(w)
		if len(w.alarms) == 0 || w.alarms[0].Ended || w.alarms[0].Message == "" {
			t.Errorf("%s does not fire: %v", name, w.alarms)
		}
		w = newWorld(t, r)
		test.quiet(w)
		if len(w.alarms) > 0 {
			t.Errorf("%s fires: %v", name, w.alarms)
		}
	}
}
