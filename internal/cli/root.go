package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/app"
	"github.com/slipway-dev/slipway/internal/cli/backup"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/cli/crd"
	"github.com/slipway-dev/slipway/internal/cli/monitor"
	"github.com/slipway-dev/slipway/internal/cli/watch"
	"github.com/slipway-dev/slipway/internal/cli/why"
)

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, options command.Options, args []string) int {
	return command.Run(ctx, options, args, addCommands)
}

const rootLong = `See and steer the applications that Slipway runs.

A WebApp is named as webapp/NAME, slwapp/NAME or just NAME. The commands why, tree and watch tell of objects
of every kind: name them as KIND/NAME, where the kinds of Slipway come first. backup and restore take the NAME
of a Backup.`

const rootExample = `  # Is it ready? Follow a rollout until it is, or has failed
  kubectl slipway status webapp/shop --watch

  # Why is it not ready? Down to the pod and its last words
  kubectl slipway why webapp/shop

  # What belongs to it, and how does each do?
  kubectl slipway tree webapp/shop

  # What ran before, and back to it
  kubectl slipway history webapp/shop
  kubectl slipway rollback webapp/shop --to 3

  # Copies of a volume: make one, list them, bring one back
  kubectl slipway backup now shop-data --wait
  kubectl slipway backup ls shop-data
  kubectl slipway restore shop-data --to shop-data-restored --create 10Gi --wait

  # What does a changed CustomResourceDefinition break?
  kubectl slipway crd check widgets.yaml`

// addCommands adds the commands of all rooms.
func addCommands(p *command.Program, root *cobra.Command) {
	root.Short = "See and steer the applications that Slipway runs"
	root.Long = rootLong
	root.Example = rootExample
	root.AddCommand(
		app.NewStatusCommand(p),
		why.NewCommand(p),
		why.NewTreeCommand(p),
		watch.NewCommand(p),
		app.NewHistoryCommand(p),
		monitor.NewChangesCommand(p),
		monitor.NewHealthCommand(p),
		monitor.NewCoverageCommand(p),
		monitor.NewUICommand(p),
		app.NewRollbackCommand(p),
		backup.NewCommand(p),
		backup.NewRestoreCommand(p),
		crd.NewCommand(p),
		command.NewVersionCommand(p),
	)
}
