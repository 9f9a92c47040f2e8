package backuprun

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

// The controller's metrics. Labels are bounded: reasons are constants.
var (
	// RunsByCondition is computed from the cache when it is asked for.
	RunsByCondition = metric.Definition{
		Name: "slipway_backuprun_runs", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "BackupRuns by condition type and status.",
	}
	// Failures counts runs that failed.
	Failures = metric.Definition{
		Name: "slipway_backuprun_failures_total", Type: metric.Counter, Labels: []string{"reason"},
		Help: "Runs that failed, by reason.",
	}
	// Duration measures runs.
	Duration = metric.Definition{
		Name: "slipway_backuprun_duration_seconds", Type: metric.Histogram, Labels: []string{"result"},
		Help: "Time from the start of a run to its end, in seconds, by result: completed or failed.",
	}
	// Bytes counts what was added to repositories.
	Bytes = metric.Definition{
		Name: "slipway_backuprun_added_bytes_total", Type: metric.Counter,
		Help: "Bytes that completed runs have added to repositories.",
	}
	// HooksLeft counts workloads that nobody has released. The gauge of conditions forgets a run that is deleted.
	HooksLeft = metric.Definition{
		Name: "slipway_backuprun_hooks_left_total", Type: metric.Counter,
		Help: "Runs that were deleted and went before their after hook had run.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{RunsByCondition, Failures, Duration, Bytes, HooksLeft}
)

// durationBuckets reach from a small volume to half a day, in seconds.
var durationBuckets = []float64{5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200}

// failureReasons are the reasons for which a run may fail. Each series starts at 0: Prometheus sees no increase in the first
// value of a series.
var failureReasons = []string{
	slipwayv1alpha1.ReasonBackupNotFound, slipwayv1alpha1.ReasonBackupReplaced, slipwayv1alpha1.ReasonOtherController,
	slipwayv1alpha1.ReasonTerminating, slipwayv1alpha1.ReasonSourceNotFound, slipwayv1alpha1.ReasonSourceHasNoVolume,
	slipwayv1alpha1.ReasonVolumeNotBound, slipwayv1alpha1.ReasonVolumeInUse, slipwayv1alpha1.ReasonSecretNotFound,
	slipwayv1alpha1.ReasonDeadlineExceeded, slipwayv1alpha1.ReasonPodPending, slipwayv1alpha1.ReasonPodLost, slipwayv1alpha1.ReasonEvicted,
	slipwayv1alpha1.ReasonOOMKilled, slipwayv1alpha1.ReasonInvalid, slipwayv1alpha1.ReasonWrongPassword,
	slipwayv1alpha1.ReasonWrongRepository,
	slipwayv1alpha1.ReasonRepositoryNotFound, slipwayv1alpha1.ReasonDestinationNotEmpty, slipwayv1alpha1.ReasonUnreachable,
	slipwayv1alpha1.ReasonAccessDenied, slipwayv1alpha1.ReasonNoSpace, slipwayv1alpha1.ReasonSourceUnreadable,
	slipwayv1alpha1.ReasonSourceEmpty, slipwayv1alpha1.ReasonHalfRestored, slipwayv1alpha1.ReasonCorrupt, slipwayv1alpha1.ReasonMoverFailed,
	slipwayv1alpha1.ReasonHooksDisabled, slipwayv1alpha1.ReasonHookNotAllowed, slipwayv1alpha1.ReasonHookFailed,
	slipwayv1alpha1.ReasonHookInterrupted, slipwayv1alpha1.ReasonPodGone,
	slipwayv1alpha1.ReasonNoVolumeSnapshotClass, slipwayv1alpha1.ReasonVolumeSnapshotFailed,
}

const (
	resultCompleted = "completed"
	resultFailed    = "failed"
)

type metrics struct {
	failures  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	bytes     prometheus.Counter
	hooksLeft prometheus.Counter
}

// newMetrics registers the metrics. A second controller in the same process, as in tests, shares the counters of the first.
func newMetrics(cached cache.Cache) *metrics {
	m := &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: Failures.Name, Help: Failures.Help}, Failures.Labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: Duration.Name, Help: Duration.Help, Buckets: durationBuckets,
		}, Duration.Labels),
		bytes:     prometheus.NewCounter(prometheus.CounterOpts{Name: Bytes.Name, Help: Bytes.Help}),
		hooksLeft: prometheus.NewCounter(prometheus.CounterOpts{Name: HooksLeft.Name, Help: HooksLeft.Help}),
	}
	m.failures = metric.Registered(crmetrics.Registry, m.failures)
	m.duration = metric.Registered(crmetrics.Registry, m.duration)
	m.bytes = metric.Registered(crmetrics.Registry, m.bytes)
	m.hooksLeft = metric.Registered(crmetrics.Registry, m.hooksLeft)
	for _, reason := range failureReasons {
		m.failures.WithLabelValues(reason)
	}
	for _, result := range []string{resultCompleted, resultFailed} {
		m.duration.WithLabelValues(result)
	}
	kit.CountConditions(
		cached, RunsByCondition, &slipwayv1alpha1.BackupRun{}, &slipwayv1alpha1.BackupRunList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ConditionStalled,
		slipwayv1alpha1.ConditionLiveSource,
		slipwayv1alpha1.ConditionCrashConsistent, slipwayv1alpha1.ConditionHookAfterFailed)
	return m
}

// observe counts a run that has ended.
func (m *metrics) observe(run *slipwayv1alpha1.BackupRun) {
	result := resultCompleted
	if run.Status.Phase == slipwayv1alpha1.BackupFailed {
		result = resultFailed
		m.failures.WithLabelValues(run.Status.Reason).Inc()
	} else {
		m.bytes.Add(float64(run.Status.AddedBytes))
	}
	m.duration.WithLabelValues(result).Observe(run.Status.CompletionTime.Sub(run.Status.StartTime.Time).Seconds())
}
