package webapp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

// The controller's metrics. Labels are bounded: condition types and reasons are constants.
var (
	// AppsByCondition is computed from the cache when it is asked for.
	AppsByCondition = metric.Definition{
		Name: "slipway_webapp_apps", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "WebApps by condition type and status.",
	}
	// Rollbacks counts decisions to roll back.
	Rollbacks = metric.Definition{
		Name: "slipway_webapp_rollbacks_total", Type: metric.Counter, Labels: []string{"reason"},
		Help: "Rollouts that were rolled back, by the reason they failed for.",
	}
	// RolloutDuration measures rollouts from the change of the Deployment to the verdict.
	RolloutDuration = metric.Definition{
		Name: "slipway_webapp_rollout_duration_seconds", Type: metric.Histogram, Labels: []string{"result"},
		Help: "Time from the change of the Deployment until the revision was the last good one or had failed, in seconds, by result: " +
			"complete or failed.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{AppsByCondition, Rollbacks, RolloutDuration}
)

// rolloutBuckets reach from an image that is already there to an hour, in seconds.
var rolloutBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

// The values of the labels. Each series starts at 0. Prometheus sees no increase in the first
// value of a series, so a series that starts at 1 hides its first rollback.
var (
	// rollbackReasons are the reasons for which a rollout may fail.
	rollbackReasons = []string{
		slipwayv1alpha1.ReasonProgressDeadlineExceeded,
		// What keeps pods from being made.
		slipwayv1alpha1.ReasonPodsForbidden, slipwayv1alpha1.ReasonPodsNotCreated, slipwayv1alpha1.ReasonQuotaExceeded,
		// What keeps them from being started.
		slipwayv1alpha1.ReasonUnschedulable, slipwayv1alpha1.ReasonVolumePending, slipwayv1alpha1.ReasonSandboxFailed,
		slipwayv1alpha1.ReasonMountFailed,
		slipwayv1alpha1.ReasonImageNotFound, slipwayv1alpha1.ReasonImagePullDenied, slipwayv1alpha1.ReasonImagePullBackOff,
		slipwayv1alpha1.ReasonInvalidImageName,
		slipwayv1alpha1.ReasonContainerConfigError, slipwayv1alpha1.ReasonContainerStartError,
		// What keeps them from serving.
		slipwayv1alpha1.ReasonCrashLoopBackOff, slipwayv1alpha1.ReasonOOMKilled, slipwayv1alpha1.ReasonProbeFailing,
		slipwayv1alpha1.ReasonPodFailed, slipwayv1alpha1.ReasonEvicted,
	}
	rolloutResults = []string{resultComplete, resultFailed}
)

const (
	resultComplete = "complete"
	resultFailed   = "failed"
)

type metrics struct {
	rollbacks *prometheus.CounterVec
	duration  *prometheus.HistogramVec
}

// newCounters makes what is counted as it happens.
func newCounters() *metrics {
	m := &metrics{
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: Rollbacks.Name, Help: Rollbacks.Help}, Rollbacks.Labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: RolloutDuration.Name, Help: RolloutDuration.Help, Buckets: rolloutBuckets,
		}, RolloutDuration.Labels),
	}
	for _, reason := range rollbackReasons {
		m.rollbacks.WithLabelValues(reason)
	}
	for _, result := range rolloutResults {
		m.duration.WithLabelValues(result)
	}
	return m
}

// newMetrics registers the metrics. A second controller in the same process, as in
// tests, shares the counters of the first.
func newMetrics(cached cache.Cache) *metrics {
	m := newCounters()
	m.rollbacks = metric.Registered(crmetrics.Registry, m.rollbacks)
	m.duration = metric.Registered(crmetrics.Registry, m.duration)
	kit.CountConditions(
		cached, AppsByCondition, &slipwayv1alpha1.WebApp{}, &slipwayv1alpha1.WebAppList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing,
		slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionRolledBack,
		slipwayv1alpha1.ConditionPaused)
	return m
}

// observe counts what a written status tells.
func (m *metrics) observe(before, after *slipwayv1alpha1.WebApp, now time.Time) {
	if rollback := after.Status.Rollback; rollback != nil && before.Status.Rollback == nil {
		m.rollbacks.WithLabelValues(rollback.Reason).Inc()
	}
	if result := rolloutResult(before, after); result != "" {
		m.duration.WithLabelValues(result).Observe(now.Sub(before.Status.Rollout.StartTime.Time).Seconds())
	}
}

// rolloutResult tells how the rollout that was under way ended, or nothing: while it
// goes on, and when another one replaced it or the application was paused or stopped
// meanwhile. One that failed and is held counts as failed, once.
func rolloutResult(before, after *slipwayv1alpha1.WebApp) string {
	rollout := before.Status.Rollout
	switch {
	case rollout == nil:
		return ""
	case after.Status.Rollback != nil && after.Status.Rollback.FromRevision == rollout.Revision,
		!held(before) && held(after) && after.Status.Rollout != nil && after.Status.Rollout.Revision == rollout.Revision:
		return resultFailed
	case after.Status.Rollout == nil && after.Status.LastGoodRevision == rollout.Revision && !held(before):
		return resultComplete
	default:
		return ""
	}
}

// held reports whether a rollout has failed and stays as it is.
func held(app *slipwayv1alpha1.WebApp) bool {
	c := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionStalled)
	return c != nil && c.Reason == slipwayv1alpha1.ReasonRolloutFailed
}
