package apigateway

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/metric"
)

var (
	// GatewaysByCondition is computed from the cache when it is asked for.
	GatewaysByCondition = metric.Definition{
		Name: "slipway_apigateway_gateways", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "APIGateways by condition type and status.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{GatewaysByCondition}
)

// registerMetrics registers the metrics.
func registerMetrics(cached cache.Cache) {
	kit.CountConditions(
		cached, GatewaysByCondition, &slipwayv1alpha1.APIGateway{}, &slipwayv1alpha1.APIGatewayList{},
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs,
		slipwayv1alpha1.ConditionProgrammed, slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing,
		slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled)
}
