package alarm

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/metric"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
)

// maxRules is how many rules have series of their own. The others are counted together, as otherRules.
const (
	maxRules   = 1000
	otherRules = "other"
	// outboxTimeout bounds how long metrics wait for the store.
	outboxTimeout = 2 * time.Second
)

// The metrics.
var (
	raisedMetric = metric.Definition{
		Name: "slipway_monitor_alarms_total", Type: metric.Counter, Labels: []string{"rule", "severity"},
		Help: "Alarms that were raised, by rule and severity. Of more than 1,000 rules the others are counted as other.",
	}
	firingMetric = metric.Definition{
		Name: "slipway_monitor_alarms_firing", Type: metric.Gauge, Labels: []string{"rule", "severity"},
		Help: "Objects for which an alarm stands, by rule and severity, for at most 1,000 rules. A rule without one has the value 0.",
	}
	failingMetric = metric.Definition{
		Name: "slipway_monitor_rule_failing_objects", Type: metric.Gauge, Labels: []string{"rule"},
		Help: "Objects for which an expression of a rule fails. A rule that fails for none has no series.",
	}
	evaluationMetric = metric.Definition{
		Name: "slipway_monitor_rules_duration_seconds", Type: metric.Histogram,
		Help: "Time that all rules about an object take for one change, in seconds.",
	}
	deliveriesMetric = metric.Definition{
		Name: "slipway_monitor_deliveries_total", Type: metric.Counter, Labels: []string{"output", "result"},
		Help: "Attempts to deliver a message about an alarm, by output (event, or webhook/ and its name) and result: sent, retried or " +
			"given_up. What is given up is lost.",
	}
	droppedMetric = metric.Definition{
		Name: "slipway_monitor_messages_dropped_total", Type: metric.Counter,
		Help: "Messages about alarms that were not stored, because one change had more than 1,500, or 2,000 about their namespace wait " +
			"for the webhook or as Events.",
	}
	waitingMetric = metric.Definition{
		Name: "slipway_monitor_outbox_messages", Type: metric.Gauge, Help: "Messages about alarms that wait to be delivered.",
	}
)

// Metrics are all of them, for the documentation.
func Metrics() []metric.Definition {
	return []metric.Definition{raisedMetric, firingMetric, failingMetric, evaluationMetric, deliveriesMetric, droppedMetric, waitingMetric}
}

// evaluationBuckets reach from a rule that is not about anything to a hundred that are, in seconds.
var evaluationBuckets = []float64{1e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 0.01, 0.05, 0.1, 0.5, 1}

type metrics struct {
	alarms     *Alarms
	evaluation prometheus.Histogram
	// dropped are messages that take did not hand to the store. What the store refuses comes on top.
	dropped    atomic.Int64
	deliveries *prometheus.CounterVec
	total      *prometheus.CounterVec
	firing     *prometheus.Desc
	failing    *prometheus.Desc
	waiting    *prometheus.Desc

	mutex sync.Mutex
	// named are the rules that have a series of their own.
	named map[string]bool
}

func newMetrics(a *Alarms, registry prometheus.Registerer) *metrics {
	describe := func(d metric.Definition) *prometheus.Desc { return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil) }
	counters := func(d metric.Definition) *prometheus.CounterVec {
		return metric.Registered(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels))
	}
	m := &metrics{
		alarms: a, named: map[string]bool{},
		evaluation: metric.Registered(registry, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: evaluationMetric.Name, Help: evaluationMetric.Help, Buckets: evaluationBuckets,
		})),
		deliveries: counters(deliveriesMetric), total: counters(raisedMetric),
		firing: describe(firingMetric), failing: describe(failingMetric), waiting: describe(waitingMetric),
	}
	metric.Registered(registry,
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: droppedMetric.Name, Help: droppedMetric.Help}, func() float64 {
			return float64(m.dropped.Load() + a.options.Store.Stats().Refused)
		}))
	// Else the first message that is given up would begin a series, and no increase of it would be seen.
	outputs := []string{notify.OutputEvent}
	for name := range a.options.Webhooks {
		outputs = append(outputs, notify.OutputWebhook+name)
	}
	for _, output := range outputs {
		for _, result := range []notify.Result{notify.Sent, notify.Retried, notify.GivenUp} {
			m.deliveries.WithLabelValues(output, string(result))
		}
	}
	return metric.Registered(registry, m)
}

func (m *metrics) delivered(output string, result notify.Result) {
	m.deliveries.WithLabelValues(output, string(result)).Inc()
}

func (m *metrics) raised(alarm *rule.Alarm) {
	name := alarm.Rule
	m.mutex.Lock()
	if !m.named[name] {
		if len(m.named) < maxRules {
			m.named[name] = true
		} else {
			name = otherRules
		}
	}
	m.mutex.Unlock()
	m.total.WithLabelValues(name, string(alarm.Severity)).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- m.firing
	descriptions <- m.failing
	descriptions <- m.waiting
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(values chan<- prometheus.Metric) {
	type counted struct {
		name, severity string
		status         rule.Status
	}
	var rules []counted
	for name, e := range m.alarms.entries() {
		if e.rule != nil {
			rules = append(rules, counted{name, string(e.rule.Severity), m.alarms.Status(e.uid)})
		}
	}
	slices.SortFunc(rules, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.status.Firing, a.status.Firing), cmp.Compare(a.name, b.name))
	})
	for _, r := range rules[:min(len(rules), maxRules)] {
		values <- prometheus.MustNewConstMetric(m.firing, prometheus.GaugeValue, float64(r.status.Firing), r.name, r.severity)
		if r.status.Failing > 0 {
			values <- prometheus.MustNewConstMetric(m.failing, prometheus.GaugeValue, float64(r.status.Failing), r.name)
		}
	}
	ctx, cancel := context.WithTimeout(m.alarms.context, outboxTimeout)
	defer cancel()
	if n, err := m.alarms.options.Store.Waiting(ctx); err == nil {
		values <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(n))
	}
}
