package webapp

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
)

// Kind describes WebApps.
func Kind(options Options) kit.Kind {
	return kit.Kind{
		Name:  "webapp",
		Setup: func(mgr ctrl.Manager) error { return Setup(mgr, options) },
		Budget: map[client.Object]cache.ByObject{
			&slipwayv1alpha1.WebApp{}: {Transform: cache.TransformStripManagedFields()},
		},
		Metrics: Metrics,
		People:  []kit.People{{Resource: "webapps", Edit: true, Status: true, Scale: true}},
	}
}
