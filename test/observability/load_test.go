// Package observability tests config/observability: that rules and dashboards ask for metrics that there are, that every
// alert is tested and documented, and, with the build tag observability, that all of it works with a real Prometheus that
// scrapes the real programs.
package observability

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// root is the folder of the repository.
var root = filepath.Join("..", "..")

// folder is what is tested.
var folder = filepath.Join(root, "config", "observability")

// rule is a recording rule or an alert.
type rule struct {
	Record      string            `json:"record"`
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`

	file string
}

// alertTest is a test of promtool.
type alertTest struct {
	Name      string `json:"name"`
	Interval  string `json:"interval"`
	Input     []any  `json:"input_series"`
	AlertTest []struct {
		Alert  string `json:"alertname"`
		At     string `json:"eval_time"`
		Alerts []struct {
			Labels      map[string]string `json:"exp_labels"`
			Annotations map[string]string `json:"exp_annotations"`
		} `json:"exp_alerts"`
	} `json:"alert_rule_test"`

	file string
}

// dashboard is what of a Grafana dashboard is looked at.
type dashboard struct {
	UID         string `json:"uid"`
	Title       string `json:"title"`
	Annotations struct {
		List []target `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`

	file string
}

type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Query any    `json:"query"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []target `json:"targets"`
}

type target struct {
	Name         string            `json:"name"`
	RefID        string            `json:"refId"`
	Expr         string            `json:"expr"`
	LegendFormat string            `json:"legendFormat"`
	Datasource   map[string]string `json:"datasource"`
}

// query is an expression and where it stands.
type query struct {
	where, expr string
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func filesIn(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func loadRules(t *testing.T) []rule {
	t.Helper()
	var rules []rule
	for _, file := range filesIn(t, "rules/*.yaml") {
		var content struct {
			Groups []struct {
				Name  string `json:"name"`
				Rules []rule `json:"rules"`
			} `json:"groups"`
		}
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range content.Groups {
			for _, r := range group.Rules {
				r.file = filepath.Base(file)
				rules = append(rules, r)
			}
		}
	}
	return rules
}

func loadAlertTests(t *testing.T) []alertTest {
	t.Helper()
	var tests []alertTest
	for _, file := range filesIn(t, "tests/*.yaml") {
		var content struct {
			RuleFiles []string    `json:"rule_files"`
			Interval  string      `json:"evaluation_interval"`
			Order     []string    `json:"group_eval_order"`
			Tests     []alertTest `json:"tests"`
		}
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), &content); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, one := range content.Tests {
			one.file = filepath.Base(file)
			tests = append(tests, one)
		}
	}
	return tests
}

func loadDashboards(t *testing.T) []dashboard {
	t.Helper()
	var dashboards []dashboard
	for _, file := range filesIn(t, "dashboards/*.json") {
		var one dashboard
		if err := json.Unmarshal([]byte(readFile(t, file)), &one); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		one.file = filepath.Base(file)
		dashboards = append(dashboards, one)
	}
	return dashboards
}

// grafana replaces the variables of a dashboard as Grafana does when everything is chosen.
var grafana = strings.NewReplacer("$__rate_interval", "1m", "$namespace", ".*", "$apigateway", ".*")

// queries are all that Prometheus is asked: by rules, by dashboards, and by docs/metrics.md.
func queries(t *testing.T) []query {
	t.Helper()
	var all []query
	for _, r := range loadRules(t) {
		all = append(all, query{r.file + " " + r.Record + r.Alert, r.Expr})
	}
	for _, d := range loadDashboards(t) {
		for _, a := range d.Annotations.List {
			all = append(all, query{d.file + " annotation " + a.Name, a.Expr})
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				all = append(all, query{d.file + " variable " + v.Name, grafana.Replace(variableSelector(t, v))})
			}
		}
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				all = append(all, query{fmt.Sprintf("%s panel %q %s", d.file, p.Title, q.RefID), grafana.Replace(q.Expr)})
			}
		}
	}
	return append(all, documentedQueries(t)...)
}

// variableSelector returns the series whose labels a variable of a dashboard offers: label_values(SELECTOR, LABEL).
func variableSelector(t *testing.T, v variable) string {
	t.Helper()
	fields, _ := v.Query.(map[string]any)
	text, _ := fields["query"].(string)
	inner, ok := strings.CutPrefix(text, "label_values(")
	comma := strings.LastIndex(inner, ",")
	if !ok || comma < 0 {
		t.Fatalf("variable %s: the query is %q", v.Name, text)
	}
	return inner[:comma]
}

// documentedQueries are the expressions in the tables of docs/metrics.md: the last cell of a row, in backquotes.
func documentedQueries(t *testing.T) []query {
	t.Helper()
	var all []query
	for line := range strings.Lines(readFile(t, filepath.Join(root, "docs", "metrics.md"))) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 2 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		all = append(all, query{"docs/metrics.md: " + cells[0], strings.Trim(cells[1], "`")})
	}
	if len(all) < 10 {
		t.Fatalf("only %d expressions in docs/metrics.md", len(all))
	}
	return all
}
