package webapp

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
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
		Help: "Time from the change of the Deployment to the end of the rollout, in seconds, by result: complete or failed.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{AppsByCondition, Rollbacks, RolloutDuration}
)

// rolloutBuckets reach from an image that is already there to an hour, in seconds.
var rolloutBuckets = []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}

type metrics struct {
	rollbacks *prometheus.CounterVec
	duration  *prometheus.HistogramVec
}

// newMetrics registers the metrics. A second controller in the same process, as in
// tests, shares the counters of the first.
func newMetrics(reader client.Reader) *metrics {
	m := &metrics{
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: Rollbacks.Name, Help: Rollbacks.Help}, Rollbacks.Labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: RolloutDuration.Name, Help: RolloutDuration.Help, Buckets: rolloutBuckets,
		}, RolloutDuration.Labels),
	}
	m.rollbacks = registered(m.rollbacks)
	m.duration = registered(m.duration)
	registered(&appsCollector{reader: reader, description: prometheus.NewDesc(AppsByCondition.Name, AppsByCondition.Help, AppsByCondition.Labels, nil)})
	return m
}

// registered registers a collector, or returns the one that is registered already.
func registered[C prometheus.Collector](collector C) C {
	var already prometheus.AlreadyRegisteredError
	if errors.As(crmetrics.Registry.Register(collector), &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return collector
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
		return "failed"
	case after.Status.Rollout == nil && after.Status.LastGoodRevision == rollout.Revision && !held(before):
		return "complete"
	default:
		return ""
	}
}

// held tells that a rollout has failed and stays as it is.
func held(app *slipwayv1alpha1.WebApp) bool {
	c := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionStalled)
	return c != nil && c.Reason == slipwayv1alpha1.ReasonRolloutFailed
}

// appsCollector counts WebApps when metrics are read, so that nothing has to be kept
// up to date in between.
type appsCollector struct {
	reader      client.Reader
	description *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *appsCollector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.description }

// Collect implements prometheus.Collector.
func (c *appsCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) //nolint:forbidigo // the collector interface has no context
	defer cancel()
	apps := &slipwayv1alpha1.WebAppList{}
	if err := c.reader.List(ctx, apps, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		metrics <- prometheus.NewInvalidMetric(c.description, err)
		return
	}
	for key, count := range countByCondition(apps.Items) {
		metrics <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(count), key[0], key[1])
	}
}

// countByCondition counts by condition type and status. A condition that is absent
// counts as False, so that every series is always there.
func countByCondition(apps []slipwayv1alpha1.WebApp) map[[2]string]int {
	types := []string{
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing,
		slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionRolledBack,
	}
	counts := map[[2]string]int{}
	for _, conditionType := range types {
		counts[[2]string{conditionType, "True"}] = 0
		counts[[2]string{conditionType, "False"}] = 0
		for i := range apps {
			status := "False"
			if meta.IsStatusConditionTrue(apps[i].Status.Conditions, conditionType) {
				status = "True"
			}
			counts[[2]string{conditionType, status}]++
		}
	}
	return counts
}
