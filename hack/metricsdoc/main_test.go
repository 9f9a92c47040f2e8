package main

import (
	"strings"
	"testing"

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
