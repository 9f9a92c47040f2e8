// Command metricsdoc writes docs/metrics.md: the tables from the metrics that the
// controllers and the gateway define, the rest from metrics.md.tmpl.
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"slices"
	"text/template"

	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/kit/metric"
)

//go:generate go run . -output ../../docs/metrics.md

//go:embed metrics.md.tmpl
var page string

// definitions are the metrics by the section of the page that shows them.
var definitions = map[string][]metric.Definition{
	"WebApp":     webapp.Metrics,
	"APIGateway": apigateway.Metrics,
	"Gateway":    slices.Concat(proxy.Definitions(), gateway.StateMetrics()),
}

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
	if err := tmpl.Execute(&out, definitions); err != nil {
		return nil, fmt.Errorf("fill in the page: %w", err)
	}
	return out.Bytes(), nil
}
