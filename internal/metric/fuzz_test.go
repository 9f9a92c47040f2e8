package metric_test

import (
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/metric"
)

// Whatever a help text says, it is one cell of one row.
func FuzzTable(f *testing.F) {
	f.Add("Counts.")
	f.Add("Counts a|b.")
	f.Add("Counts\nlines.")
	f.Add(`Ends in \`)
	f.Fuzz(func(t *testing.T, help string) {
		got := metric.Table([]metric.Definition{
			{Name: "slipway_a_total", Type: metric.Counter, Labels: []string{"x", "y"}, Help: help},
			{Name: "slipway_b", Type: metric.Gauge, Help: help},
		})
		rows := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		if len(rows) != 4 {
			t.Fatalf("%d rows:\n%s", len(rows), got)
		}
		for _, row := range rows {
			if bars := strings.Count(strings.ReplaceAll(row, `\|`, ""), "|"); bars != 5 {
				t.Errorf("%d bars in %q, want 5", bars, row)
			}
		}
	})
}
