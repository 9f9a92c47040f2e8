package list

import (
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const gateway = "github.com/slipway-dev/slipway/internal/gateway/"

// A room of a feature has a pure half and one that serves. Both know no other feature: what features share are facts of an exchange.
func TestAFeatureKnowsNoOther(t *testing.T) {
	paths, err := filepath.Glob("../*/serve/*.go")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		own := strings.Split(filepath.ToSlash(path), "/")[1]
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if room, is := strings.CutPrefix(imported, gateway+"feature/"); is && strings.Split(room, "/")[0] != own {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}

// The operator computes the same table as the pods. It links nothing that serves it: connections, caches and encoders.
func TestTheOperatorServesNoTable(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "github.com/slipway-dev/slipway/cmd/slipway-operator").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 {
		t.Fatalf("it links only %d packages", len(linked))
	}
	for _, pkg := range linked {
		room, is := strings.CutPrefix(pkg, gateway)
		if is && (strings.HasSuffix(room, "/serve") || room == "exchange" || room == "proxy" || room == "upstream" || room == "telemetry") {
			t.Errorf("it links %s", pkg)
		}
	}
}
