package operator

import (
	"cmp"
	"slices"

	"github.com/slipway-dev/slipway/internal/backup/lock"
	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/backuprun"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	"github.com/slipway-dev/slipway/internal/controller/restore"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// shared is what controllers of one operator have in common, and what there is with its manager only. The kinds can be described
// without it, but not set up.
type shared struct {
	// keys are those of what is hashed.
	keys contentkey.Keys
	// going knows which namespaces are being deleted. Nil where the operator is limited to some.
	going *going.Namespaces
	// named has the kinds of what Backups and Restores name and others make.
	named *optional.Kinds
}

// kindsFor are the kinds of an operator with these options. A kind is in this list, and nowhere else: the controllers, the webhooks,
// the cache, the documentation of metrics and the rights of people are made from it.
func kindsFor(options Options, seams Seams, with shared) []kit.Kind {
	serial := &lock.Serial{} // a Backup and its runs make Jobs for one repository
	backupImage := cmp.Or(options.BackupImage, defaultBackupImage)
	gateways := gatewayOptions(options, seams)
	gateways.Going = with.going
	return []kit.Kind{
		apigateway.Kind(apigateway.Options{
			Image: gateways.Image, Namespace: ownNamespace(options), HTTPRouteGateways: options.HTTPRouteGateways,
			AdminPort: seams.GatewayAdminPort, GatewayAPI: apigateway.ExposureBudget(watched(options.Namespaces)), NewCache: seams.NewCache,
			Namespaces:              with.going,
			MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
		}),
		webapp.Kind(webapp.Options{
			Keys: with.keys, Namespaces: with.going,
			MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
		}),
		backup.Kind(backup.Options{
			Image: backupImage, Hooks: options.BackupHooks, Serial: serial, Named: with.named, Namespaces: with.going,
			MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
		}),
		backuprun.Kind(backuprun.Options{
			Image: backupImage, MaxRuns: options.MaxBackupRuns, Hooks: options.BackupHooks, Exec: seams.BackupExec, Serial: serial,
			Limited: len(options.Namespaces) > 0, Namespaces: with.going,
			MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
		}),
		restore.Kind(restore.Options{
			Image: backupImage, Named: with.named, Namespaces: with.going,
			MaxConcurrentReconciles: options.MaxConcurrentReconciles, NewQueue: seams.NewQueue,
		}),
		gateway.Kind(gateways),
		gateway.ClassKind(gateways),
	}
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

// Kinds describes the kinds that an operator has controllers for. None of these can be set up.
func Kinds() []kit.Kind { return kindsFor(Options{}, Seams{}, shared{}) }

// ControllerNames are the controllers that there are.
func ControllerNames() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, kind.Name)
	}
	slices.Sort(names)
	return names
}
