package backuprun

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/keep"
)

// Kind describes BackupRuns.
func Kind(options Options) kit.Kind {
	return kit.Kind{
		Name:  "backuprun",
		Setup: func(mgr ctrl.Manager) error { return Setup(mgr, options) },
		Budget: map[client.Object]cache.ByObject{
			// A Backup makes its runs, so what it states of them is kept.
			&slipwayv1alpha1.BackupRun{}: {Transform: keep.OwnManagedFields},
		},
		Metrics: Metrics,
		People:  []kit.People{{Resource: "backupruns", Edit: true, Status: true}},
	}
}
