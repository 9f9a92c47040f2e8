package operator

import (
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipway-dev/slipway/internal/memory"
	"github.com/slipway-dev/slipway/internal/metric"
)

// The operator's metrics that are about no kind. They do not change while it runs.
var (
	// MemoryLimit lets an alert compare with the limit that there is, whatever the values of
	// the chart say.
	MemoryLimit = metric.Definition{
		Name: "slipway_operator_memory_limit_bytes", Type: metric.Gauge,
		Help: "Memory that the operator's container may use, in bytes. 0: no limit.",
	}
	// LimitedNamespaces tells operators that may run beside each other from those that may not.
	LimitedNamespaces = metric.Definition{
		Name: "slipway_operator_namespaces", Type: metric.Gauge,
		Help: "Namespaces that the operator is limited to. 0: it works in all.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{MemoryLimit, LimitedNamespaces, ExcessRights}
)

// setMetrics registers the metrics. A second operator in the same process, as in tests,
// shares those of the first.
func setMetrics(logger logr.Logger, options Options) {
	limit, err := memory.Limit()
	if err != nil {
		logger.Error(err, "the container's memory limit is unknown, metrics say that there is none")
	}
	gauge(MemoryLimit).Set(float64(limit))
	gauge(LimitedNamespaces).Set(float64(len(options.Namespaces)))
}

func gauge(definition metric.Definition) prometheus.Gauge {
	return metric.Registered(crmetrics.Registry, prometheus.NewGauge(prometheus.GaugeOpts{Name: definition.Name, Help: definition.Help}))
}
