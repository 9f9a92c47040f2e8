package app

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/cli/monitor"
)

const historyLong = `Show the revisions of a WebApp that rolled out completely, oldest first, and what changed in each.

The operator keeps the last five. A revision that failed is not kept; while it is what the spec
asks for, it is shown at the end, without a number.

Of an object of any other kind, KIND/NAME, show its changes as the monitor has recorded them, also when it is gone.
With --since or --diff that is so for a WebApp, too.`

const historyExample = `  # What ran before
  kubectl slipway history webapp/shop

  # The whole of it, for a program
  kubectl slipway history webapp/shop -o yaml

  # What changed in an object of any kind, and who did it?
  kubectl slipway history certificates.cert-manager.io/shop-tls --since 7d --diff`

// NewHistoryCommand makes the command history.
func NewHistoryCommand(p *command.Program) *cobra.Command {
	o := &monitor.ChangesOptions{Program: p, Output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "history KIND/NAME",
		Short:             "Show the revisions of a WebApp, or the changes of any object",
		Long:              historyLong,
		Example:           historyExample,
		Args:              oneHistory,
		ValidArgsFunction: p.CompleteObjects(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := command.ParseTarget(args[0]); err == nil && o.Since == "" && !o.Diff {
				return showRevisions(cmd.Context(), p, args[0], o.Output)
			}
			return o.ObjectHistory(cmd.Context(), args[0])
		},
	}
	o.Output.AddFlag(cmd)
	o.AddFlags(cmd)
	cmd.Flags().StringVar(&o.Since, "since", "", "show changes since then, from the monitor: 30m, 12h, 7d, or a time")
	cmd.Flags().BoolVar(&o.Diff, "diff", false, "show the fields that changed, from the monitor")
	cmd.Flags().IntVar(&o.Limit, "limit", 100, "how many changes to show: the newest")
	return cmd
}

func oneHistory(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && command.NamesObject(args[0]) {
		return nil
	}
	return command.OneTarget(cmd, args)
}

func showRevisions(ctx context.Context, p *command.Program, argument string, output command.Format) error {
	clients, app, err := p.Target(ctx, argument)
	if err != nil {
		return err
	}
	revisions, err := loadRevisions(ctx, clients, app)
	if err != nil {
		return err
	}
	view := historyOf(app, revisions)
	if output != command.FormatTable {
		return output.Print(p.Streams.Out, view)
	}
	return printHistory(p.Streams.Out, view, p.Clock.Now())
}
