package restore

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

// The controller's metrics.
var (
	// RestoresByCondition is computed from the cache when it is asked for.
	RestoresByCondition = metric.Definition{
		Name: "slipway_restore_restores", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "Restores by condition type and status.",
	}
	// Duration measures restores.
	Duration = metric.Definition{
		Name: "slipway_restore_duration_seconds", Type: metric.Histogram, Labels: []string{"result"},
		Help: "Time from the start of a restore to its end, in seconds, by result: completed or failed.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{RestoresByCondition, Duration}
)

// durationBuckets reach from a small volume to half a day, in seconds.
var durationBuckets = []float64{5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200}

const (
	resultCompleted = "completed"
	resultFailed    = "failed"
)

type metrics struct {
	duration *prometheus.HistogramVec
}

// newMetrics registers the metrics. A second controller in the same process, as in tests, shares the counters of the first.
func newMetrics(cached cache.Cache) *metrics {
	m := &metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: Duration.Name, Help: Duration.Help, Buckets: durationBuckets,
	}, Duration.Labels)}
	m.duration = metric.Registered(crmetrics.Registry, m.duration)
	for _, result := range []string{resultCompleted, resultFailed} {
		m.duration.WithLabelValues(result)
	}
	kit.CountConditions(
		cached, RestoresByCondition, &slipwayv1alpha1.Restore{}, &slipwayv1alpha1.RestoreList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ConditionStalled,
		slipwayv1alpha1.ConditionOwnersNotKept)
	return m
}

// observe counts a restore that has ended.
func (m *metrics) observe(restore *slipwayv1alpha1.Restore) {
	result := resultCompleted
	if restore.Status.Phase == slipwayv1alpha1.BackupFailed {
		result = resultFailed
	}
	m.duration.WithLabelValues(result).Observe(restore.Status.CompletionTime.Sub(restore.Status.StartTime.Time).Seconds())
}
