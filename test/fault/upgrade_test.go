//go:build faulttest

package fault_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// record is the release whose fixtures are to be written: once for each kind, and never
// again.
var record = flag.String("record", "", "write what this version of the operator leaves as the fixtures of that release, for the kinds that have none of it")

// F12: what every release left in a cluster, at the end of every scenario, is taken over
// without a change that would restart a pod.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	if *record != "" {
		recordRelease(t, *record)
	}
	files, err := filepath.Glob("testdata/*/releases/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures of any release (%v)", err)
	}
	for _, file := range files {
		if !slices.ContainsFunc(kinds, func(k scenario.Kind) bool { return strings.HasPrefix(file, "testdata/"+k.Name+"/") }) {
			continue
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, _, _ := strings.Cut(name, "/")
			t.Cleanup(func() { table.Add(kind+"/"+filepath.Base(name), "F12 upgrade", !t.Failed()) })
			release, err := scenario.ReadRelease(file)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(kinds, func(k scenario.Kind) bool { return k.Name == kind })
			if err := bench.PlayUpgrade(t, kinds[at], release); err != nil {
				t.Error(err)
			}
		})
	}
}

// recordRelease writes the fixtures of the kinds that have none of that release yet, and
// leaves the others alone.
func recordRelease(t *testing.T, version string) {
	t.Helper()
	recorded := 0
	for _, kind := range kinds {
		folder := filepath.Join("testdata", kind.Name, "releases", version)
		if _, err := os.Stat(folder); err == nil {
			t.Logf("%s is there already", folder)
			continue
		}
		for _, s := range kind.Scenarios {
			release, err := bench.Record(t, s)
			if err != nil {
				t.Fatalf("%s/%s: %v", kind.Name, s.Name, err)
			}
			if err := release.Write(filepath.Join(folder, s.Name+".yaml")); err != nil {
				t.Fatal(err)
			}
			recorded++
		}
	}
	if recorded == 0 {
		t.Fatalf("every kind has fixtures of %s, and those of a release are never rewritten", version)
	}
}
