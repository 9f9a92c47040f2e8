package monitorrule

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

var (
	// RulesByCondition counts rules.
	RulesByCondition = metric.Definition{
		Name: "slipway_monitorrule_rules", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "MonitorRules by condition type and status.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{RulesByCondition}
)

func registerMetrics(registry prometheus.Registerer, cached cache.Cache) {
	kit.CountConditionsIn(
		registry, cached, RulesByCondition, &slipwayv1alpha1.MonitorRule{}, &slipwayv1alpha1.MonitorRuleList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionEvaluationFailed)
}
