package gateway

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/metric"
)

var (
	// GatewaysByCondition is computed from the cache when it is asked for.
	GatewaysByCondition = metric.Definition{
		Name: "slipway_gateway_gateways", Type: metric.Gauge, Labels: []string{"condition", "status"},
		Help: "Gateways of Slipway's classes by condition type and status.",
	}
	// Metrics are all of them, for the documentation.
	Metrics = []metric.Definition{GatewaysByCondition}
)

// registerMetrics registers the metrics.
func registerMetrics(kinds *kinds, owned owned) {
	conditions := func(ctx context.Context) ([][]metav1.Condition, bool) {
		if !kinds.running() {
			return nil, false
		}
		list := &gatewayv1.GatewayList{}
		if err := kinds.objects.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
			logf.Log.Error(err, "A metric has no series", "metric", GatewaysByCondition.Name)
			return nil, false
		}
		var all [][]metav1.Condition
		for i := range list.Items {
			if ours, err := owned.is(ctx, &list.Items[i]); ours && err == nil {
				all = append(all, list.Items[i].Status.Conditions)
			}
		}
		return all, true
	}
	types := []string{
		string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionResolvedRefs), string(gatewayv1.GatewayConditionProgrammed),
	}
	metric.Registered(crmetrics.Registry, metric.NewByCondition(GatewaysByCondition, types, conditions))
}
