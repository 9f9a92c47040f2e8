package observability

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is the documentation of the alerts.
const page = "https://github.com/slipway-dev/slipway/blob/main/docs/observability.md#"

func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(loadRules(t), func(r rule) bool { return r.Alert == "" })
}

func TestEveryAlertSaysWhatAnEngineerNeeds(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		if seen[a.Alert] {
			t.Errorf("%s: twice", a.Alert)
		}
		seen[a.Alert] = true
		if !strings.HasPrefix(a.Alert, "Slipway") {
			t.Errorf("%s: the name does not begin with Slipway", a.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("%s: the severity is %q", a.Alert, a.Labels["severity"])
		}
		summary, description := a.Annotations["summary"], a.Annotations["description"]
		if summary == "" || len(summary) > 80 || strings.Contains(summary, "{{") || strings.HasSuffix(summary, ".") {
			t.Errorf("%s: the summary %q is not one short line without values", a.Alert, summary)
		}
		if len(description) < 40 || !strings.HasSuffix(description, ".") {
			t.Errorf("%s: the description %q is no sentence", a.Alert, description)
		}
		if got, want := a.Annotations["runbook_url"], page+strings.ToLower(a.Alert); got != want {
			t.Errorf("%s: the runbook is %q, want %q", a.Alert, got, want)
		}
	}
}

func TestEveryAlertIsTested(t *testing.T) {
	type tested struct{ fires, rests int }
	names := map[string]bool{}
	found := map[string]*tested{}
	for _, a := range alerts(t) {
		found[a.Alert] = new(tested)
	}
	for _, one := range loadAlertTests(t) {
		if names[one.Name] {
			t.Errorf("%s: two tests are called %q", one.file, one.Name)
		}
		names[one.Name] = true
		for _, expectation := range one.AlertTest {
			counted := found[expectation.Alert]
			switch {
			case counted == nil:
				t.Errorf("%s: %q is about %s, which is no alert", one.file, one.Name, expectation.Alert)
			case len(one.Input) == 0:
				t.Errorf("%s: %q has no input", one.file, one.Name)
			case len(expectation.Alerts) == 0:
				counted.rests++
			default:
				counted.fires++
				for _, alert := range expectation.Alerts {
					if alert.Labels["severity"] == "" || alert.Annotations["summary"] == "" || alert.Annotations["description"] == "" {
						t.Errorf("%s: %q does not expect severity, summary and description", one.file, one.Name)
					}
				}
			}
		}
	}
	for name, counted := range found {
		if counted.fires == 0 || counted.rests == 0 {
			t.Errorf("%s: %d tests that it fires and %d that it does not, want one of each at least", name, counted.fires, counted.rests)
		}
	}
}

var (
	// alertRow is a row of the table of alerts: name with its link, severity, time.
	alertRow = regexp.MustCompile(`(?m)^\| \[(Slipway\w+)\]\(#(\w+)\) \| (\w+) \| ([^|]*) \|`)
	// alertSection is the section of an alert: what it begins with, up to the next heading.
	alertSection = regexp.MustCompile(`(?m)^#### (Slipway\w+)\n\n((?:[^#\n].*\n|\n)+)`)
)

func TestEveryAlertIsDocumented(t *testing.T) {
	text := readFile(t, filepath.Join(root, "docs", "observability.md"))
	rows, sections := map[string]string{}, map[string]string{}
	for _, row := range alertRow.FindAllStringSubmatch(text, -1) {
		if row[2] != strings.ToLower(row[1]) {
			t.Errorf("the link of %s leads to #%s", row[1], row[2])
		}
		rows[row[1]] = row[3] + ", " + strings.TrimSpace(row[4])
	}
	for _, section := range alertSection.FindAllStringSubmatch(text, -1) {
		sections[section[1]] = section[2]
	}
	for _, a := range alerts(t) {
		want := fmt.Sprintf("%s, %s", a.Labels["severity"], a.For)
		if a.For == "" {
			want = a.Labels["severity"] + ", at once"
		}
		if got := rows[a.Alert]; got != want {
			t.Errorf("%s: the table says %q, want %q", a.Alert, got, want)
		}
		if len(sections[a.Alert]) < 80 {
			t.Errorf("%s: the section %q does not say what to do", a.Alert, sections[a.Alert])
		}
		delete(rows, a.Alert)
		delete(sections, a.Alert)
	}
	for name := range rows {
		t.Errorf("the table has %s, which is no alert", name)
	}
	for name := range sections {
		t.Errorf("a section is about %s, which is no alert", name)
	}
}
