// Command metricsdoc writes docs/metrics.md: the tables from the metrics that the
// controllers and the gateway define, the rest from metrics.md.tmpl.
package main

import (
	_ "embed"
	"text/template"

	"github.com/slipway-dev/slipway/hack/generated"
	"github.com/slipway-dev/slipway/hack/metricsdoc/defined"
	"github.com/slipway-dev/slipway/internal/metric"
)

//go:generate go run . -output ../../docs/metrics.md

//go:embed metrics.md.tmpl
var page string

func main() { generated.Main("metricsdoc", render) }

func render() ([]byte, error) {
	return generated.Fill(page, template.FuncMap{"table": metric.Table}, defined.BySection())
}
