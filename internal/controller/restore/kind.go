package restore

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
)

// Kind describes Restores.
func Kind(options Options) kit.Kind {
	return kit.Kind{
		Name:  "restore",
		Setup: func(mgr ctrl.Manager) error { return Setup(mgr, options) },
		Budget: map[client.Object]cache.ByObject{
			&slipwayv1alpha1.Restore{}: {Transform: cache.TransformStripManagedFields()},
		},
		Metrics: Metrics,
		People:  []kit.People{{Resource: "restores", Edit: true, Status: true}},
	}
}
