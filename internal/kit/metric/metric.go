package metric

import (
	"fmt"
	"strings"
)

// Type is a Prometheus metric type.
type Type string

// The types in use.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Definition describes one metric.
type Definition struct {
	// Name is the full name, with unit and suffix.
	Name string
	// Type is the metric's type.
	Type Type
	// Labels are the label names.
	Labels []string
	// Help says what it counts or measures, and in which unit.
	Help string
}

// cell makes any text one cell of a Markdown table.
var cell = strings.NewReplacer("|", `\|`, "\n", " ")

// Table renders definitions as a Markdown table.
func Table(definitions []Definition) string {
	var table strings.Builder
	table.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, d := range definitions {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), cell.Replace(d.Help))
	}
	return table.String()
}
