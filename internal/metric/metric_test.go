package metric_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/metric"
)

func TestTable(t *testing.T) {
	got := metric.Table([]metric.Definition{
		{Name: "slipway_a_total", Type: metric.Counter, Labels: []string{"x", "y"}, Help: "Counts."},
		{Name: "slipway_b", Type: metric.Gauge, Help: "Measures."},
	})
	want := `| metric | type | labels | meaning |
|---|---|---|---|
| ` + "`slipway_a_total`" + ` | counter | x, y | Counts. |
| ` + "`slipway_b`" + ` | gauge |  | Measures. |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
