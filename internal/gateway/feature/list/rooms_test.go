package list

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const gateway = "github.com/slipway-dev/slipway/internal/gateway/"

// A room of a feature knows no other feature. What features share are facts of an exchange, and feature/list has them all.
func TestAFeatureKnowsNoOther(t *testing.T) {
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		own := strings.Split(filepath.ToSlash(path), "/")
		if err != nil || len(own) < 3 || own[1] == "list" || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if room, is := strings.CutPrefix(imported, gateway+"feature/"); is && strings.Split(room, "/")[0] != own[1] {
				t.Errorf("%s imports %s", path, imported)
			}
		}
		return nil
	})
	if err != nil || files < 30 {
		t.Errorf("%d files are read, %v", files, err)
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
