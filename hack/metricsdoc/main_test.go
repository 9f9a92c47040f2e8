package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/hack/metricsdoc/defined"
)

func TestThePageNamesEveryMetric(t *testing.T) {
	content, err := render()
	if err != nil {
		t.Fatal(err)
	}
	for section, metrics := range defined.BySection() {
		for _, definition := range metrics {
			if !strings.Contains(string(content), "`"+definition.Name+"`") {
				t.Errorf("%s: the page does not name %s", section, definition.Name)
			}
		}
	}
}

func TestAPageThatIsUpToDateIsNotWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "metrics.md")
	if err := run(file); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1000000000, 0)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if err := run(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if !info.ModTime().Equal(long) {
		t.Error("the file was written again")
	}
}
