//go:build observability

package observability

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// prometheus is a Prometheus that runs.
type prometheus struct {
	address string
}

// startPrometheus starts Prometheus with a configuration of ours, after change has made it fit for a test.
func startPrometheus(t *testing.T, name string, change func(config map[string]any)) *prometheus {
	t.Helper()
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(folder, name))), &config); err != nil {
		t.Fatal(err)
	}
	config["global"] = map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
	change(config)
	content, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	at, port := t.TempDir(), freePort(t)
	file := filepath.Join(at, name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(at, "rules"), os.DirFS(filepath.Join(folder, "rules"))); err != nil {
		t.Fatal(err)
	}
	run(t, nil, tool(t, "PROMETHEUS"), "--config.file="+file, "--storage.tsdb.path="+filepath.Join(at, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port), "--log.level=warn")
	p := &prometheus{address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	eventually(t, time.Minute, func() error { _, err := get(p.address + "/-/ready"); return err })
	return p
}

// answer is what Prometheus' API says.
type answer struct {
	Status   string          `json:"status"`
	Data     json.RawMessage `json:"data"`
	Error    string          `json:"error"`
	Warnings []string        `json:"warnings"`
	Infos    []string        `json:"infos"`
}

// ask asks the API. Warnings and hints are errors, too.
func (p *prometheus) ask(path string, parameters url.Values, into any) error {
	response, err := http.Get(p.address + "/api/v1/" + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("%s: %s: %w", path, body, err)
	}
	if a.Status != "success" || len(a.Warnings) > 0 || len(a.Infos) > 0 {
		return fmt.Errorf("%s: %s %s %v %v", path, a.Status, a.Error, a.Warnings, a.Infos)
	}
	return json.Unmarshal(a.Data, into)
}

// healthy returns an error unless so many targets answer, and no other one is known.
func (p *prometheus) healthy(want int) error {
	var found struct {
		ActiveTargets []struct {
			Labels    map[string]string
			Health    string
			LastError string
		}
	}
	if err := p.ask("targets", url.Values{"state": {"active"}}, &found); err != nil {
		return err
	}
	up := 0
	for _, target := range found.ActiveTargets {
		if target.Health == "up" {
			up++
		}
	}
	if up != want || len(found.ActiveTargets) != want {
		return fmt.Errorf("%d of %d targets answer, want %d: %+v", up, len(found.ActiveTargets), want, found.ActiveTargets)
	}
	return nil
}

// rulesWork returns an error unless every rule was evaluated without one.
func (p *prometheus) rulesWork(want int) error {
	var found struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := p.ask("rules", nil, &found); err != nil {
		return err
	}
	rules := 0
	for _, group := range found.Groups {
		for _, r := range group.Rules {
			rules++
			if r.Health != "ok" {
				return fmt.Errorf("the rule %s is %s: %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if rules != want {
		return fmt.Errorf("there are %d rules, want %d", rules, want)
	}
	return nil
}

// vectorSelectors returns what an expression selects, as Prometheus' own parser reads it: the names, and the selectors whole.
func (p *prometheus) vectorSelectors(expr string) (names, selectors []string, err error) {
	var tree any
	if err := p.ask("parse_query", url.Values{"query": {expr}}, &tree); err != nil {
		return nil, nil, err
	}
	walk(tree, func(node map[string]any) {
		if kind := node["type"]; kind != "vectorSelector" && kind != "matrixSelector" {
			return
		}
		name, _ := node["name"].(string)
		names = append(names, name)
		matchers, _ := node["matchers"].([]any)
		var parts []string
		for _, one := range matchers {
			m, _ := one.(map[string]any)
			if m["name"] != "__name__" {
				parts = append(parts, fmt.Sprintf("%s%s%q", m["name"], m["type"], m["value"]))
			}
		}
		slices.Sort(parts)
		selectors = append(selectors, name+"{"+strings.Join(parts, ",")+"}")
	})
	return names, selectors, nil
}

// walk visits every object of a tree.
func walk(tree any, visit func(map[string]any)) {
	switch node := tree.(type) {
	case map[string]any:
		visit(node)
		for _, child := range node {
			walk(child, visit)
		}
	case []any:
		for _, child := range node {
			walk(child, visit)
		}
	}
}

// exists reports whether there is a series that the selector selects.
func (p *prometheus) exists(selector string) (bool, error) {
	var found []map[string]string
	err := p.ask("series", url.Values{"match[]": {selector}, "limit": {"0"}}, &found)
	return len(found) > 0, err
}
