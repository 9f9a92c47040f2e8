package gateway

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit"
)

// Kind describes Gateways of the Gateway API. They and their routes, which a cluster need not have, are in caches of their own, and
// the rights of people to them are not Slipway's to give. What Slipway has for them is its own: parameters and policies.
func Kind(options Options) kit.Kind {
	return kit.Kind{
		Name:  "gateway",
		Setup: func(mgr ctrl.Manager) error { return Setup(mgr, options) },
		Budget: map[client.Object]cache.ByObject{
			// What the pods and Services of Gateways are made like.
			&slipwayv1alpha1.GatewayParameters{}: {Transform: cache.TransformStripManagedFields()},
			// One object: which pods may read the Gateway API.
			&rbacv1.ClusterRoleBinding{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", desired.RightsName),
				Transform: cache.TransformStripManagedFields(),
			},
		},
		Metrics: Metrics,
		People: []kit.People{
			// Whoever runs the cluster writes them.
			{Resource: "gatewayparameters"},
			{Resource: "gatewaypolicies", Edit: true, Status: true},
		},
	}
}

// ClassKind describes GatewayClasses.
func ClassKind(options Options) kit.Kind {
	return kit.Kind{Name: "gatewayclass", Setup: func(mgr ctrl.Manager) error { return SetupClass(mgr, options) }}
}
