package apigateway

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/kit"
)

// Kind describes APIGateways.
func Kind(options Options) kit.Kind {
	return kit.Kind{
		Name:    "apigateway",
		Setup:   func(mgr ctrl.Manager) error { return Setup(mgr, options) },
		Webhook: func(mgr ctrl.Manager) { SetupWebhook(mgr, options.Namespace) },
		Budget: map[client.Object]cache.ByObject{
			&slipwayv1alpha1.APIGateway{}: {Transform: cache.TransformStripManagedFields()},
			// In the operator's own namespace: whose a host is.
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{options.Namespace: {}},
				Label:      hosts.Selector(),
				Transform:  cache.TransformStripManagedFields(),
			},
		},
		Metrics: Metrics,
		People:  []kit.People{{Resource: "apigateways", Edit: true, Status: true, Scale: true}},
	}
}
