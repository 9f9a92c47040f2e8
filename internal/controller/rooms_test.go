// Package controller_test holds what all kinds have in common: each has a package of its own here, with the same files, and is
// registered in the same places. docs/dev/add-a-kind.md is the list for people.
package controller_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/operator"
)

// root is the root of the project, from here.
const root = "../.."

// files are those of every kind's package.
var files = []string{
	"doc.go", "kind.go", "controller.go", "scope.go", "children.go", "status.go", "setup.go", "metrics.go",
	"main_api_test.go", "writes_api_test.go", "drift_api_test.go", "fuzz_test.go",
	"desired/doc.go", "desired/desired.go", "desired/desired_test.go",
}

// shared are packages beside the kinds that are not of one kind.
var shared = map[string]bool{"dataplane": true, "testdata": true}

// monitorRule is the room of the kind that runs in the monitor. It has no children, so there is nothing to apply, and nothing that
// could drift; the operator knows nothing of it, and the player of faults, which plays the operator, does not play it. Its rights
// are in config/monitor/rbac.yaml.
const monitorRule = "../monitor/monitorrule"

// standard are kinds that Slipway does not define: those of the Gateway API. Their group, and where each is cached, is not ours, and
// the player of faults knows only our own kinds.
var standard = map[string]bool{"gateway": true}

// ofChildren are the files that only a kind with children has, which all run in the operator: it asks for kind.go.
var ofChildren = []string{"kind.go", "children.go", "drift_api_test.go", "main_api_test.go", "writes_api_test.go", "desired/doc.go", "desired/desired.go", "desired/desired_test.go"}

// rooms are the names of the kinds that have a package here.
func rooms(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && !shared[entry.Name()] {
			names = append(names, entry.Name())
		}
	}
	if len(names) < 2 {
		t.Fatalf("the rooms are %q", names)
	}
	return names
}

// read returns a file below the root.
func read(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// first returns the first group of a pattern.
func first(t *testing.T, pattern, text string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	return found[1]
}

// What each file is for stands in doc.go: hack/shape.
func TestEveryPackageOfAKindHasTheSameFiles(t *testing.T) {
	for _, room := range append(rooms(t), monitorRule) {
		t.Run(filepath.Base(room), func(t *testing.T) {
			for _, file := range files {
				if room == monitorRule && slices.Contains(ofChildren, file) {
					continue
				}
				if _, err := os.Stat(filepath.Join(room, file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestEveryKindIsKnownWhereverKindsAre(t *testing.T) {
	budget, metrics := read(t, "internal/operator/cache.go"), read(t, "docs/metrics.md")
	for _, room := range rooms(t) {
		budget += read(t, "internal/controller", room, "kind.go")
		if standard[room] {
			budget += read(t, "internal/controller", room, "budget.go")
		}
	}
	for _, room := range rooms(t) {
		t.Run(room, func(t *testing.T) {
			in := func(path ...string) string { return read(t, append([]string{"internal/controller", room}, path...)...) }
			kind := first(t, `const Kind = "(\w+)"`, in("desired/desired.go"))
			if strings.ToLower(kind) != room {
				t.Errorf("the room of %s is called %s", kind, room)
			}
			group, api, end := "slipway.dev", "slipwayv1alpha1", ",verbs="
			if standard[room] {
				group, api, end = "gateway.networking.k8s.io", "gatewayv1", ";"
			}
			for what, missing := range map[string]bool{
				"a marker for its rights in controller.go":               !strings.Contains(in("controller.go"), "+kubebuilder:rbac:groups="+group+",resources="+room+"s"+end),
				"a marker for the rights on its status in controller.go": !strings.Contains(in("controller.go"), "+kubebuilder:rbac:groups="+group+",resources="+room+"s/status"+end),
				"a line in the cache budget":                             !strings.Contains(budget, "&"+api+"."+kind+"{}"),
				"a line in internal/operator/kinds.go":                   !slices.Contains(operator.ControllerNames(), room),
			} {
				if missing {
					t.Errorf("%s lacks %s", kind, what)
				}
			}
			for _, child := range regexp.MustCompile(`(?:Owns|Watches|WatchesMetadata)\(&(\w+\.\w+)\{\}`).FindAllStringSubmatch(in("setup.go"), -1) {
				if !strings.Contains(budget, "&"+child[1]+"{}") {
					t.Errorf("the cache budget has no line for %s, which is watched", child[1])
				}
			}
			names := regexp.MustCompile(`"(slipway_\w+)"`).FindAllStringSubmatch(in("metrics.go"), -1)
			if len(names) == 0 {
				t.Error("it has no metrics")
			}
			for _, name := range names {
				if !strings.HasPrefix(name[1], "slipway_"+room+"_") || !strings.Contains(metrics, "`"+name[1]+"`") {
					t.Errorf("metric %s is not called after the kind, or not in docs/metrics.md", name[1])
				}
			}
		})
	}
}

func TestEveryKindHasASpecPageAndFaultScenarios(t *testing.T) {
	for _, room := range append(rooms(t), monitorRule) {
		t.Run(filepath.Base(room), func(t *testing.T) {
			page := read(t, "docs/spec", filepath.Base(room)+".md")
			for _, section := range []string{"## Writing a spec", "## Working with ", "## Status"} {
				if !strings.Contains(page, section) {
					t.Errorf("docs/spec/%s.md lacks %q", room, section)
				}
			}
			if room == monitorRule || standard[room] {
				return
			}
			read(t, "test/fault/testdata", room, "kind.yaml")
			scenarios, err := filepath.Glob(filepath.Join(root, "test/fault/testdata", room, "scenarios", "*.yaml"))
			if err != nil || len(scenarios) == 0 {
				t.Errorf("it has no scenarios in test/fault/testdata (%v)", err)
			}
		})
	}
}

// What the kind of the monitor asks for in its markers, the monitor has. Its metrics are documented.
func TestTheMonitorHasTheRightsOfItsKind(t *testing.T) {
	rights, metrics, run := read(t, "config/monitor/rbac.yaml"), read(t, "docs/metrics.md"), read(t, "internal/monitor/app/rules.go")
	markers := regexp.MustCompile(`\+kubebuilder:rbac:groups=(\S+),resources=(\S+),verbs=(\S+)`).FindAllStringSubmatch(read(t, "internal/controller", monitorRule, "controller.go"), -1)
	if len(markers) < 2 {
		t.Errorf("it has the markers %q", markers)
	}
	for _, m := range markers {
		rule := "  - apiGroups: [" + m[1] + "]\n    resources: [" + m[2] + "]\n    verbs: [" + strings.ReplaceAll(m[3], ";", ", ") + "]"
		if !strings.Contains(rights, rule) {
			t.Errorf("config/monitor/rbac.yaml lacks\n%s", rule)
		}
	}
	for _, name := range regexp.MustCompile(`"(slipway_\w+)"`).FindAllStringSubmatch(read(t, "internal/controller", monitorRule, "metrics.go"), -1) {
		if !strings.HasPrefix(name[1], "slipway_monitorrule_") || !strings.Contains(metrics, "`"+name[1]+"`") {
			t.Errorf("metric %s is not called after the kind, or not in docs/metrics.md", name[1])
		}
	}
	if !strings.Contains(run, "monitorrule.Setup(") {
		t.Error("the monitor does not run its controller")
	}
}

// Reconcile is a table of contents. A linter holds its length; this holds that it ends where every other one does.
func TestEveryReconcileEndsWithTheKit(t *testing.T) {
	for _, room := range append(rooms(t), monitorRule) {
		t.Run(filepath.Base(room), func(t *testing.T) {
			source := read(t, "internal/controller", room, "controller.go")
			body := first(t, `(?s)\nfunc \(r \*Reconciler\) Reconcile\((.*?)\n}\n`, source)
			for _, call := range []string{"r.load(ctx,", "r.kit.Abort(", "r.kit.Forget(", "r.kit.Conclude("} {
				if !strings.Contains(body, call) {
					t.Errorf("Reconcile does not call %s...)", call)
				}
			}
			if lines := strings.Count(body, "\n"); lines > 80 {
				t.Errorf("Reconcile has %d lines", lines)
			}
		})
	}
}
