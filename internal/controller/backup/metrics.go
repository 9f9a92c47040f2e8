package backup

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

// backupLabels name a Backup. Prometheus gives the label namespace to the operator's own.
var backupLabels = []string{"backup_namespace", "backup"}

// The controller's metrics.
var (
	// BackupsByCondition is computed from the cache when it is asked for.
	BackupsByCondition = metric.Definition{
		Name: "slipway_backup_backups", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "Backups by condition type and status.",
	}
	// LastVerified tells how new the newest verified copy is.
	LastVerified = metric.Definition{
		Name: "slipway_backup_last_verified_timestamp_seconds", Type: metric.Gauge, Labels: backupLabels,
		Help: "When the source of the newest verified copy was read, in seconds since 1970. 0: there is no verified copy. A Backup that " +
			"is suspended has none of these series.",
	}
	// ObjectiveMet reports whether that is as new as the schedule promises.
	ObjectiveMet = metric.Definition{
		Name: "slipway_backup_rpo_met", Type: metric.Gauge, Labels: backupLabels,
		Help: "1 while the newest verified copy is as new as the schedule promises, otherwise 0.",
	}
	// RetentionApplied reports whether old copies were removed.
	RetentionApplied = metric.Definition{
		Name: "slipway_backup_retention_applied", Type: metric.Gauge, Labels: backupLabels,
		Help: "1 while the copies that are not to be kept are removed and unused space was freed, otherwise 0.",
	}
	// DrillLastSuccess tells how long ago a restore was proved.
	DrillLastSuccess = metric.Definition{
		Name: "slipway_backup_drill_last_success_timestamp_seconds", Type: metric.Gauge, Labels: backupLabels,
		Help: "When the newest drill ended that passed, in seconds since 1970. 0: none has. A Backup without spec.verify.drill, or that " +
			"is suspended, has none of these series.",
	}
	// DrillPassed tells how the newest drill went.
	DrillPassed = metric.Definition{
		Name: "slipway_backup_drill_passed", Type: metric.Gauge, Labels: backupLabels,
		Help: "1 when the newest drill that has ended passed, 0 when it failed. There is no series before the first one has ended.",
	}
	// DrillFailures counts drills that failed.
	DrillFailures = metric.Definition{
		Name: "slipway_backup_drill_failures_total", Type: metric.Counter, Labels: []string{"reason"},
		Help: "Drills that failed, by reason.",
	}
	// Missed counts slots.
	Missed = metric.Definition{
		Name: "slipway_backup_missed_slots_total", Type: metric.Counter,
		Help: "Times of schedules that went by without a run.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{
		BackupsByCondition, LastVerified, ObjectiveMet, RetentionApplied, Missed, DrillLastSuccess, DrillPassed, DrillFailures,
	}
)

type metrics struct {
	last   *prometheus.GaugeVec
	met    *prometheus.GaugeVec
	kept   *prometheus.GaugeVec
	missed prometheus.Counter

	drillSuccess  *prometheus.GaugeVec
	drillPassed   *prometheus.GaugeVec
	drillFailures *prometheus.CounterVec
}

// newMetrics registers the metrics. A second controller in the same process, as in tests, shares those of the first.
func newMetrics(cached cache.Cache) *metrics {
	m := &metrics{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: LastVerified.Name, Help: LastVerified.Help}, LastVerified.Labels),
		met:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: ObjectiveMet.Name, Help: ObjectiveMet.Help}, ObjectiveMet.Labels),
		kept: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: RetentionApplied.Name, Help: RetentionApplied.Help},
			RetentionApplied.Labels),
		missed: prometheus.NewCounter(prometheus.CounterOpts{Name: Missed.Name, Help: Missed.Help}),
	}
	m.drillSuccess = metric.Registered(crmetrics.Registry,
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: DrillLastSuccess.Name, Help: DrillLastSuccess.Help}, DrillLastSuccess.Labels))
	m.drillPassed = metric.Registered(crmetrics.Registry,
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: DrillPassed.Name, Help: DrillPassed.Help}, DrillPassed.Labels))
	m.drillFailures = metric.Registered(crmetrics.Registry,
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: DrillFailures.Name, Help: DrillFailures.Help}, DrillFailures.Labels))
	m.last = metric.Registered(crmetrics.Registry, m.last)
	m.met = metric.Registered(crmetrics.Registry, m.met)
	m.kept = metric.Registered(crmetrics.Registry, m.kept)
	m.missed = metric.Registered(crmetrics.Registry, m.missed)
	kit.CountConditions(
		cached, BackupsByCondition, &slipwayv1alpha1.Backup{}, &slipwayv1alpha1.BackupList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionVerified, slipwayv1alpha1.ConditionRPOMet,
		slipwayv1alpha1.ConditionRetentionApplied, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionSuspended,
		slipwayv1alpha1.ConditionLiveSource, slipwayv1alpha1.ConditionCrashConsistent, slipwayv1alpha1.ConditionDrillPassed)
	return m
}

// observe tells what a status says.
func (m *metrics) observe(backup *slipwayv1alpha1.Backup) {
	key := client.ObjectKeyFromObject(backup)
	if backup.Spec.Suspend {
		m.forget(key)
		return
	}
	last := 0.0
	if backup.Status.LastBackupTime != nil {
		last = float64(backup.Status.LastBackupTime.Unix())
	}
	m.last.WithLabelValues(key.Namespace, key.Name).Set(last)
	m.met.WithLabelValues(key.Namespace, key.Name).Set(isTrue(backup, slipwayv1alpha1.ConditionRPOMet))
	m.kept.WithLabelValues(key.Namespace, key.Name).Set(isTrue(backup, slipwayv1alpha1.ConditionRetentionApplied))
	m.observeDrill(key, backup)
}

// observeDrill tells how drills went.
func (m *metrics) observeDrill(key types.NamespacedName, backup *slipwayv1alpha1.Backup) {
	drill := backup.Status.Drill
	if drill == nil {
		m.forgetDrill(key)
		return
	}
	success := 0.0
	if drill.LastSuccessTime != nil {
		success = float64(drill.LastSuccessTime.Unix())
	}
	m.drillSuccess.WithLabelValues(key.Namespace, key.Name).Set(success)
	if drill.LastTime == nil {
		m.drillPassed.DeleteLabelValues(key.Namespace, key.Name)
		return
	}
	m.drillPassed.WithLabelValues(key.Namespace, key.Name).Set(isTrue(backup, slipwayv1alpha1.ConditionDrillPassed))
}

func (m *metrics) forgetDrill(key types.NamespacedName) {
	m.drillSuccess.DeleteLabelValues(key.Namespace, key.Name)
	m.drillPassed.DeleteLabelValues(key.Namespace, key.Name)
}

// failedDrill is why a drill failed that has ended with this status, or empty.
func failedDrill(before, now *slipwayv1alpha1.BackupDrillStatus) string {
	if now == nil || now.Phase != slipwayv1alpha1.BackupFailed {
		return ""
	}
	if before != nil && before.Phase == now.Phase && before.Name == now.Name {
		return ""
	}
	return now.Reason
}

// isTrue is 1 where a condition is True, otherwise 0.
func isTrue(backup *slipwayv1alpha1.Backup, condition string) float64 {
	if meta.IsStatusConditionTrue(backup.Status.Conditions, condition) {
		return 1
	}
	return 0
}

// forget drops the series of a Backup that has gone.
func (m *metrics) forget(key types.NamespacedName) {
	m.last.DeleteLabelValues(key.Namespace, key.Name)
	m.met.DeleteLabelValues(key.Namespace, key.Name)
	m.kept.DeleteLabelValues(key.Namespace, key.Name)
	m.forgetDrill(key)
}
