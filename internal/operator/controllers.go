package operator

import (
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// addControllers registers the controllers, and the webhooks of their kinds where webhooks are served.
func addControllers(mgr ctrl.Manager, options Options, seams Seams) error {
	with, err := newShared(mgr, options, seams)
	if err != nil {
		return err
	}
	all := kindsFor(options, seams, with)
	names := options.Controllers
	if len(names) == 0 {
		names = ControllerNames()
	}
	for _, name := range names {
		at := slices.IndexFunc(all, func(kind kit.Kind) bool { return kind.Name == name })
		if at < 0 {
			return fmt.Errorf("there is no controller %q", name)
		}
		if err := all[at].Setup(mgr); err != nil {
			return fmt.Errorf("set up the controller %s: %w", name, err)
		}
		if options.WebhookPort != 0 && all[at].Webhook != nil {
			all[at].Webhook(mgr)
		}
	}
	if slices.Contains(names, "backup") || slices.Contains(names, "restore") {
		return with.named.Setup()
	}
	return nil
}

// newShared makes what the controllers have in common.
func newShared(mgr ctrl.Manager, options Options, seams Seams) (shared, error) {
	keys, err := contentKeys(mgr, options, seams)
	if err != nil {
		return shared{}, err
	}
	// Backups and Restores name objects of the same kinds.
	named, err := optional.New(mgr, optional.Options{Budget: backup.NamedBudget(watched(options.Namespaces)), NewCache: seams.NewCache})
	if err != nil {
		return shared{}, fmt.Errorf("set up the kinds of what others make: %w", err)
	}
	with := shared{keys: keys, named: named}
	if len(options.Namespaces) == 0 {
		with.going = going.New(mgr)
	}
	return with, nil
}
