// Package metrics says in figures what the monitor does. No metric has a label for an object or a namespace.
package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipway-dev/slipway/internal/metric"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// The places of the definitions.
const (
	kinds = iota
	complete
	lag
	events
	lists
	gaps
	waitingEvents
	waitingBytes
	records
	marked
	folded
	redacted
	losses
	trouble
	storeBytes
	storedChanges
	dropped
	oldest
	kindLag
)

const commitName = "slipway_monitor_commit_duration_seconds"

// maxKinds is how many kinds have a series of their own: those that are furthest behind.
const maxKinds = 100

// Definitions describes the metrics.
func Definitions() []metric.Definition {
	return append(states(), metric.Definition{
		Name: commitName, Type: metric.Histogram,
		Help: "Time from when a change is taken for the store until it is on the disk, in seconds.",
	})
}

func states() []metric.Definition {
	return []metric.Definition{
		{Name: "slipway_monitor_kinds", Type: metric.Gauge, Labels: []string{"state"}, Help: "Kinds by how they are covered: Pending, " +
			"Listing, Live, Behind, Refused, Failing, Excluded or Stopping. Only Live is covered."},
		{
			Name: "slipway_monitor_definitions_known", Type: metric.Gauge,
			Help: "1 while the definitions are followed, 0 while kinds may be unknown.",
		},
		{
			Name: "slipway_monitor_lag_seconds", Type: metric.Gauge,
			Help: "How long the oldest change may have waited that was sent and not taken, of all kinds, in seconds.",
		},
		{
			Name: "slipway_monitor_events_total", Type: metric.Counter,
			Help: "Changes that watches have sent, for the kinds that are followed now.",
		},
		{
			Name: "slipway_monitor_lists_total", Type: metric.Counter,
			Help: "Lists of all objects of a kind, for the kinds that are followed now.",
		},
		{
			Name: "slipway_monitor_gaps_total", Type: metric.Counter,
			Help: "Gaps that were recorded: times in which changes may have been missed.",
		},
		{Name: "slipway_monitor_waiting_events", Type: metric.Gauge, Help: "Changes that wait for the store."},
		{Name: "slipway_monitor_waiting_bytes", Type: metric.Gauge, Help: "Memory of the changes that wait for the store, in bytes."},
		{
			Name: "slipway_monitor_records_total", Type: metric.Counter, Labels: []string{"type"},
			Help: "Records that were stored, by type: Baseline, Created, Updated, Deleted or Gap.",
		},
		{
			Name: "slipway_monitor_records_marked_total", Type: metric.Counter, Labels: []string{"mark"},
			Help: "Records that were stored with a mark: schemaDriven, inGap or metadataOnly.",
		},
		{Name: "slipway_monitor_folded_total", Type: metric.Counter, Help: "Changes without a meaning that were counted and left out."},
		{Name: "slipway_monitor_redacted_total", Type: metric.Counter, Help: "Secrets that were taken out of what was recorded."},
		{Name: "slipway_monitor_store_losses_total", Type: metric.Counter, Help: "Files that the store has lost."},
		{
			Name: "slipway_monitor_store_trouble", Type: metric.Gauge, Labels: []string{"trouble"},
			Help: "1 while the store takes no changes, by what is wrong with it. Without trouble there is no series.",
		},
		{Name: "slipway_monitor_store_bytes", Type: metric.Gauge, Help: "Size of all files of the store, in bytes."},
		{Name: "slipway_monitor_store_changes", Type: metric.Gauge, Help: "Changes that can be asked for."},
		{Name: "slipway_monitor_store_dropped_total", Type: metric.Counter, Labels: []string{"why"}, Help: "Changes that went since the " +
			"start: share, because a namespace had the most when room was needed, or file, with a whole file."},
		{
			Name: "slipway_monitor_store_oldest_timestamp_seconds", Type: metric.Gauge,
			Help: "Time of the oldest change, in seconds since 1970. 0: there is none.",
		},
		{Name: "slipway_monitor_kind_lag_seconds", Type: metric.Gauge, Labels: []string{"group", "resource"}, Help: "How long the oldest " +
			"change of a kind may have waited, in seconds, for the 100 kinds that wait longest. A kind that does not wait has no series."},
	}
}

// Collector collects the metrics.
type Collector struct {
	recorder  *recorder.Recorder
	store     *store.Store
	coverage  func() supervisor.Coverage
	described []*prometheus.Desc
}

// NewCommits returns what is told of each commit, and registers its metric.
func NewCommits(registry prometheus.Registerer) func(took time.Duration, events int) {
	definitions := Definitions()
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: commitName, Help: definitions[len(definitions)-1].Help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
	})
	histogram = metric.Registered(registry, histogram)
	return func(took time.Duration, _ int) { histogram.Observe(took.Seconds()) }
}

// Register registers the other metrics. Their values are computed when they are read.
func Register(registry prometheus.Registerer, r *recorder.Recorder, s *store.Store, coverage func() supervisor.Coverage) error {
	c := &Collector{recorder: r, store: s, coverage: coverage}
	for _, d := range states() {
		c.described = append(c.described, prometheus.NewDesc(d.Name, d.Help, d.Labels, nil))
	}
	return registry.Register(c)
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range c.described {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	put := func(place int, t prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(c.described[place], t, value, labels...)
	}
	gauge := func(place int, value float64, labels ...string) { put(place, prometheus.GaugeValue, value, labels...) }
	counter := func(place int, value int64, labels ...string) {
		put(place, prometheus.CounterValue, float64(value), labels...)
	}

	f := c.recorder.Figures()
	gauge(waitingEvents, float64(f.WaitingEvents))
	gauge(waitingBytes, float64(f.WaitingBytes))
	for name, n := range f.Records {
		counter(records, n, string(name))
	}
	counter(gaps, f.Records["Gap"])
	counter(marked, f.SchemaDriven, "schemaDriven")
	counter(marked, f.InGap, "inGap")
	counter(marked, f.MetadataOnly, "metadataOnly")
	counter(folded, f.Folded)
	counter(redacted, f.Redacted)
	counter(losses, f.Losses)
	if now := c.recorder.Trouble(); now.Kind != "" {
		gauge(trouble, 1, string(now.Kind))
	}
	stats := c.store.Stats()
	gauge(storeBytes, float64(stats.Bytes))
	gauge(storedChanges, float64(stats.Changes))
	counter(dropped, stats.Thinned, "share")
	counter(dropped, stats.Dropped-stats.Thinned, "file")
	gauge(oldest, float64(stats.Oldest/int64(time.Second)))
	c.collectCoverage(gauge, counter)
}

func (c *Collector) collectCoverage(gauge func(int, float64, ...string), counter func(int, int64, ...string)) {
	coverage := c.coverage()
	byState := map[supervisor.State]int{}
	for _, state := range []supervisor.State{
		supervisor.Pending, supervisor.Listing, supervisor.Live, supervisor.Behind, supervisor.Refused, supervisor.Failing,
		supervisor.Excluded, supervisor.Stopping,
	} {
		byState[state] = 0
	}
	var sum supervisor.Counts
	var longest time.Duration
	for i := range coverage.Kinds {
		k := &coverage.Kinds[i]
		byState[k.State]++
		sum.Events += k.Counts.Events
		sum.Lists += k.Counts.Lists
		longest = max(longest, k.Lag)
	}
	for state, n := range byState {
		gauge(kinds, float64(n), string(state))
	}
	known := 0.0
	if coverage.Complete && coverage.Definitions.State == supervisor.Live {
		known = 1
	}
	gauge(complete, known)
	gauge(lag, longest.Seconds())
	counter(events, sum.Events)
	counter(lists, sum.Lists)
	for _, k := range slowest(coverage.Kinds) {
		gauge(kindLag, k.Lag.Seconds(), k.Kind.Group, k.Kind.Resource)
	}
}

// slowest returns the kinds that wait longest, and no more than have a series.
func slowest(all []supervisor.KindCoverage) []supervisor.KindCoverage {
	behind := slices.DeleteFunc(slices.Clone(all), func(k supervisor.KindCoverage) bool { return k.Lag <= 0 })
	slices.SortStableFunc(behind, func(a, b supervisor.KindCoverage) int { return cmp.Compare(b.Lag, a.Lag) })
	return behind[:min(len(behind), maxKinds)]
}
