// Package defined lists the metrics that Slipway's programs define.
package defined

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/telemetry"
	"github.com/slipway-dev/slipway/internal/metric"
	"github.com/slipway-dev/slipway/internal/monitor/alarm"
	"github.com/slipway-dev/slipway/internal/monitor/metrics"
	"github.com/slipway-dev/slipway/internal/monitor/monitorrule"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// BySection returns the metrics by the section of docs/metrics.md that shows them: those of a controller by its name, and those of a
// whole program by that of the program.
func BySection() map[string][]metric.Definition {
	sections := map[string][]metric.Definition{
		"Operator":    slices.Concat(operator.Metrics, kindrole.Metrics),
		"Monitor":     slices.Concat(metrics.Definitions(), alarm.Metrics(), monitorrule.Metrics),
		"GatewayPods": slices.Concat(telemetry.Definitions(), gateway.StateMetrics()),
	}
	for _, kind := range operator.Kinds() {
		sections[kind.Name] = kind.Metrics
	}
	return sections
}
