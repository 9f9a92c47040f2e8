// Command metricsdoc writes docs/metrics.md: the tables from the metrics that the
// controllers and the gateway define, the rest from metrics.md.tmpl.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"text/template"

	"github.com/slipway-dev/slipway/hack/metricsdoc/defined"
	"github.com/slipway-dev/slipway/internal/metric"
)

//go:generate go run . -output ../../docs/metrics.md

//go:embed metrics.md.tmpl
var page string

func main() {
	output := flag.String("output", "", "file to write (required)")
	flag.Parse()
	if err := run(*output); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdoc:", err)
		os.Exit(1)
	}
}

// run writes the page, unless the file holds it already.
func run(output string) error {
	if output == "" {
		return fmt.Errorf("-output is required")
	}
	content, err := render()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(output); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return os.WriteFile(output, content, 0o644)
}

func render() ([]byte, error) {
	tmpl, err := template.New("metrics.md").
		Option("missingkey=error").
		Funcs(template.FuncMap{"table": metric.Table}).
		Parse(page)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, defined.BySection()); err != nil {
		return nil, fmt.Errorf("fill in the page: %w", err)
	}
	return out.Bytes(), nil
}
