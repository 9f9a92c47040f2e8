// Package defined lists the metrics that Slipway's programs define.
package defined

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	gatewaycontroller "github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/restore"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/gateway"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/metric"
	"github.com/slipway-dev/slipway/internal/monitor/alarm"
	"github.com/slipway-dev/slipway/internal/monitor/metrics"
	"github.com/slipway-dev/slipway/internal/monitor/monitorrule"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// BySection returns the metrics by the section of docs/metrics.md that shows them.
func BySection() map[string][]metric.Definition {
	return map[string][]metric.Definition{
		"WebApp":     webapp.Metrics,
		"APIGateway": apigateway.Metrics,
		"GatewayAPI": gatewaycontroller.Metrics,
		"Backup":     backup.Metrics,
		"BackupRun":  backuprun.Metrics,
		"Restore":    restore.Metrics,
		"Operator":   slices.Concat(operator.Metrics, kindrole.Metrics),
		"Monitor":    slices.Concat(metrics.Definitions(), alarm.Metrics(), monitorrule.Metrics),
		"Gateway":    slices.Concat(proxy.Definitions(), gateway.StateMetrics()),
	}
}
