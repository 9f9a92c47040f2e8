package kindrole

import (
	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/metric"
)

var (
	// KindsByRight tells how much of the cluster the monitor may read.
	KindsByRight = metric.Definition{
		Name: "slipway_operator_monitor_kinds", Type: metric.Gauge, Labels: []string{"right"},
		Help: "CustomResourceDefinitions by what the operator lets the monitor do with their objects: granted (read them), " +
			"excluded (not, " +
			"by a pattern), foreign (not, because their group is built in or another API server has it, too).",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{KindsByRight}
)

// newMetrics registers the metrics. A second controller in the same process, as in tests, shares those of the first.
func newMetrics() *prometheus.GaugeVec {
	return metric.Registered(crmetrics.Registry,
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: KindsByRight.Name, Help: KindsByRight.Help}, KindsByRight.Labels))
}
