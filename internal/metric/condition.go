package metric

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Registered registers a collector, or returns the one that is registered already: a
// second controller in the same process, as in tests, shares the collectors of the first.
func Registered[C prometheus.Collector](registry prometheus.Registerer, collector C) C {
	var already prometheus.AlreadyRegisteredError
	if errors.As(registry.Register(collector), &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return collector
}

// ByCondition counts objects by condition type and status when metrics are read, so that
// nothing has to be kept up to date in between.
type ByCondition struct {
	description *prometheus.Desc
	types       []string
	list        func(context.Context) (conditions [][]metav1.Condition, known bool)
}

// NewByCondition returns a collector. list returns the conditions of every object, and
// whether they are known; it must not wait. types are those that are counted.
func NewByCondition(
	definition Definition, types []string, list func(context.Context) (conditions [][]metav1.Condition, known bool),
) *ByCondition {
	return &ByCondition{
		description: prometheus.NewDesc(definition.Name, definition.Help, definition.Labels, nil),
		types:       types, list: list,
	}
}

// Describe implements prometheus.Collector.
func (c *ByCondition) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.description }

// Collect implements prometheus.Collector. What is not known has no series: an invalid metric
// would fail the whole page, with the metrics that say why.
func (c *ByCondition) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) //nolint:forbidigo // the collector interface has no context
	defer cancel()
	objects, known := c.list(ctx)
	if !known {
		return
	}
	for key, count := range countByCondition(c.types, objects) {
		metrics <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, float64(count), key[0], key[1])
	}
}

// countByCondition counts by condition type and status. A condition that is absent
// counts as False, so that every series is always there, and so does one that is Unknown.
func countByCondition(types []string, objects [][]metav1.Condition) map[[2]string]int {
	counts := map[[2]string]int{}
	for _, conditionType := range types {
		counts[[2]string{conditionType, "True"}] = 0
		counts[[2]string{conditionType, "False"}] = 0
		for _, conditions := range objects {
			status := "False"
			if meta.IsStatusConditionTrue(conditions, conditionType) {
				status = "True"
			}
			counts[[2]string{conditionType, status}]++
		}
	}
	return counts
}
