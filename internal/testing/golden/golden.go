// Package golden compares what a test gets with files in its folder testdata. The flag -update rewrites the files: read the
// difference before it is committed.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Check compares a text with a file.
func Check(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got, -update rewrites it:\n%s", file, diff)
	}
}

// Cases runs a case for each <name>.in.yaml in a folder. What it leads to is <name>.out.yaml. There has to be one.
func Cases(t *testing.T, folder string, lead func(t *testing.T, input string) string) {
	t.Helper()
	inputs, err := filepath.Glob(filepath.Join(folder, "*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases in %s (%v)", folder, err)
	}
	for _, input := range inputs {
		path := strings.TrimSuffix(input, ".in.yaml")
		t.Run(filepath.Base(path), func(t *testing.T) { Check(t, path+".out.yaml", lead(t, input)) })
	}
}
