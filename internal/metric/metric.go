package metric

import (
	"fmt"
	"slices"
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

// Named returns the definition with a name. It panics if there is none: names are those of the program.
func Named(definitions []Definition, name string) Definition {
	at := slices.IndexFunc(definitions, func(d Definition) bool { return d.Name == name })
	if at < 0 {
		panic("metric " + name + " is not defined")
	}
	return definitions[at]
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
