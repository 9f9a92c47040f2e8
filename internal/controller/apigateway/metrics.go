package apigateway

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/metric"
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
func registerMetrics(reader client.Reader) {
	types := []string{
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAccepted, slipwayv1alpha1.ConditionResolvedRefs,
		slipwayv1alpha1.ConditionProgrammed, slipwayv1alpha1.ConditionAvailable, slipwayv1alpha1.ConditionProgressing,
		slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ConditionStalled,
	}
	list := func(ctx context.Context) ([][]metav1.Condition, error) {
		gateways := &slipwayv1alpha1.APIGatewayList{}
		if err := reader.List(ctx, gateways, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			return nil, err
		}
		conditions := make([][]metav1.Condition, len(gateways.Items))
		for i := range gateways.Items {
			conditions[i] = gateways.Items[i].Status.Conditions
		}
		return conditions, nil
	}
	metric.Registered(crmetrics.Registry, metric.NewByCondition(GatewaysByCondition, types, list))
}
