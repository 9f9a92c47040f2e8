package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/health"
)

const whyLong = `Say why a WebApp is not ready, followed down from its conditions to what causes them: a missing
Secret or ConfigMap, the Deployment, its ReplicaSets and pods, the volume. A container that ends or does
not become ready shows its last log lines, and every object its recent warnings.

Exit code 0 when all is well, 1 when something is not.`

const whyExample = `  # What is wrong?
  kubectl slipway why webapp/shop

  # With more of the log
  kubectl slipway why webapp/shop --tail 50`

type whyOptions struct {
	*program
	output format
	tail   int64
}

func newWhyCommand(p *program) *cobra.Command {
	o := &whyOptions{program: p, output: formatTable}
	command := &cobra.Command{
		Use:               "why webapp/NAME",
		Short:             "Say why a WebApp is not ready",
		Long:              whyLong,
		Example:           whyExample,
		Args:              oneTarget,
		ValidArgsFunction: p.completeTargets,
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	o.output.addFlag(command)
	command.Flags().Int64Var(&o.tail, "tail", 10, "how many log lines of a failing container to show; 0: none")
	return command
}

func (o *whyOptions) run(ctx context.Context, argument string) error {
	if o.tail < 0 {
		return usageErrorf("--tail must not be negative")
	}
	clients, app, err := o.target(ctx, argument)
	if err != nil {
		return err
	}
	found, err := clients.load(ctx, app)
	if err != nil {
		return err
	}
	found.now = o.Clock.Now()
	if o.tail > 0 {
		found.logs = clients.loadLogs(ctx, logTargets(found), o.tail)
	}
	view := explain(found)
	if o.output != formatTable {
		err = o.output.print(o.Streams.Out, view)
	} else {
		err = printWhy(o.Streams.Out, view)
	}
	if err != nil {
		return err
	}
	if view.State != health.Healthy {
		return &exitError{code: exitNotReady} // It has all been said.
	}
	return nil
}
