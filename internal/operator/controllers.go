package operator

import (
	"cmp"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/restore"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// ControllerNames are the controllers that there are.
func ControllerNames() []string {
	return []string{"apigateway", "backup", "backuprun", "gateway", "gatewayclass", "restore", "webapp"}
}

// addControllers registers the controllers.
func addControllers(mgr ctrl.Manager, options Options, seams Seams) error {
	// Backups and Restores name objects of the same kinds.
	named, err := optional.New(mgr, optional.Options{Budget: backup.NamedBudget(watched(options.Namespaces)), NewCache: seams.NewCache})
	if err != nil {
		return fmt.Errorf("set up the kinds of what others make: %w", err)
	}
	gateways := gatewayOptions(options, seams)
	if len(options.Namespaces) == 0 {
		gateways.Going = going.New(mgr)
	}
	all := setups(mgr, options, seams, gateways, named)
	names := options.Controllers
	if len(names) == 0 {
		names = ControllerNames()
	}
	for _, name := range names {
		setUp, ok := all[name]
		if !ok {
			return fmt.Errorf("there is no controller %q", name)
		}
		if err := setUp(); err != nil {
			return fmt.Errorf("set up the controller %s: %w", name, err)
		}
	}
	if slices.Contains(names, "backup") || slices.Contains(names, "restore") {
		return named.Setup()
	}
	return nil
}

// gatewayOptions are those of the controllers of the Gateway API.
func gatewayOptions(options Options, seams Seams) gateway.Options {
	limitedTo := options.Namespaces
	if seams.ClusterRights {
		limitedTo = nil
	}
	return gateway.Options{
		Image:                   cmp.Or(options.GatewayImage, defaultGatewayImage),
		ServiceType:             options.GatewayServiceType,
		AdminPort:               seams.GatewayAdminPort,
		Namespaces:              limitedTo,
		Budget:                  gateway.NewBudget(watched(options.Namespaces), len(limitedTo) > 0),
		NewCache:                seams.NewCache,
		MaxConcurrentReconciles: options.MaxConcurrentReconciles,
		NewQueue:                seams.NewQueue,
	}
}

// setups are what registers each controller, by its name.
func setups(mgr ctrl.Manager, options Options, seams Seams, gateways gateway.Options, named *optional.Kinds) map[string]func() error {
	backupImage := cmp.Or(options.BackupImage, defaultBackupImage)
	turns := &lock.Turns{} // a Backup and its runs make Jobs for one repository
	namespaces := gateways.Going
	return map[string]func() error{
		"gateway":      func() error { return gateway.Setup(mgr, gateways) },
		"gatewayclass": func() error { return gateway.SetupClass(mgr, gateways) },
		"webapp": func() error {
			keys, err := contentKeys(mgr, options, seams)
			if err != nil {
				return err
			}
			return webapp.Setup(mgr, webapp.Options{MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue, Keys: keys, Namespaces: namespaces})
		},
		"apigateway": func() error {
			return apigateway.Setup(mgr, apigateway.Options{
				Image:                   cmp.Or(options.GatewayImage, defaultGatewayImage),
				Namespace:               ownNamespace(options),
				HTTPRouteGateways:       options.HTTPRouteGateways,
				AdminPort:               seams.GatewayAdminPort,
				GatewayAPI:              apigateway.ExposureBudget(watched(options.Namespaces)),
				Namespaces:              namespaces,
				NewCache:                seams.NewCache,
				MaxConcurrentReconciles: options.MaxConcurrentReconciles,
				NewQueue:                seams.NewQueue,
			})
		},
		"backup": func() error {
			return backup.Setup(mgr, backup.Options{
				Image: backupImage, Hooks: options.BackupHooks, Turns: turns, Named: named, Namespaces: namespaces,
				MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
			})
		},
		"backuprun": func() error {
			return backuprun.Setup(mgr, backuprun.Options{
				Image: backupImage, MaxRuns: options.MaxBackupRuns, Hooks: options.BackupHooks, Exec: seams.BackupExec, Turns: turns,
				MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue, Limited: len(options.Namespaces) > 0,
				Namespaces: namespaces,
			})
		},
		"restore": func() error {
			return restore.Setup(mgr, restore.Options{
				Image: backupImage, Named: named, MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
				Namespaces: namespaces,
			})
		},
	}
}
