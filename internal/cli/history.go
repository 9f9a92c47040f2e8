package cli

import (
	"context"

	"github.com/spf13/cobra"
)

const historyLong = `Show the revisions of a WebApp that rolled out completely, oldest first, and what changed in each.

The operator keeps the last five. A revision that failed is not kept; while it is what the spec
asks for, it is shown at the end, without a number.`

const historyExample = `  # What ran before
  kubectl slipway history webapp/shop

  # The whole of it, for a program
  kubectl slipway history webapp/shop -o yaml`

func newHistoryCommand(p *program) *cobra.Command {
	output := formatTable
	command := &cobra.Command{
		Use:               "history webapp/NAME",
		Short:             "Show the revisions of a WebApp",
		Long:              historyLong,
		Example:           historyExample,
		Args:              oneTarget,
		ValidArgsFunction: p.completeTargets,
		RunE: func(command *cobra.Command, args []string) error {
			return p.history(command.Context(), args[0], output)
		},
	}
	output.addFlag(command)
	return command
}

func (p *program) history(ctx context.Context, argument string, output format) error {
	clients, app, err := p.target(ctx, argument)
	if err != nil {
		return err
	}
	revisions, err := clients.revisions(ctx, app)
	if err != nil {
		return err
	}
	view := historyOf(app, revisions)
	if output != formatTable {
		return output.print(p.Streams.Out, view)
	}
	return printHistory(p.Streams.Out, view, p.Clock.Now())
}
