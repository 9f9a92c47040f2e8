package cli

import (
	"context"

	"github.com/spf13/cobra"
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

func newHistoryCommand(p *program) *cobra.Command {
	o := &changesOptions{program: p, output: formatTable}
	cmd := &cobra.Command{
		Use:               "history KIND/NAME",
		Short:             "Show the revisions of a WebApp, or the changes of any object",
		Long:              historyLong,
		Example:           historyExample,
		Args:              oneHistory,
		ValidArgsFunction: p.completeObjects(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := parseTarget(args[0]); err == nil && o.since == "" && !o.diff {
				return showRevisions(cmd.Context(), p, args[0], o.output)
			}
			return o.objectHistory(cmd.Context(), args[0])
		},
	}
	o.output.addFlag(cmd)
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.since, "since", "", "show changes since then, from the monitor: 30m, 12h, 7d, or a time")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show the fields that changed, from the monitor")
	cmd.Flags().IntVar(&o.limit, "limit", 100, "how many changes to show: the newest")
	return cmd
}

func oneHistory(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && namesObject(args[0]) {
		return nil
	}
	return oneTarget(cmd, args)
}

func showRevisions(ctx context.Context, p *program, argument string, output format) error {
	clients, app, err := p.target(ctx, argument)
	if err != nil {
		return err
	}
	revisions, err := loadRevisions(ctx, clients, app)
	if err != nil {
		return err
	}
	view := historyOf(app, revisions)
	if output != formatTable {
		return output.print(p.Streams.Out, view)
	}
	return printHistory(p.Streams.Out, view, p.Clock.Now())
}
