package app

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
)

const statusLong = `Show the state of a WebApp.

With --watch it shows every change of a rollout as it happens and ends when the rollout does:
exit code 0 when the WebApp is ready for its present spec, 1 when it stalled, was rolled back
or was deleted, 2 when --timeout has passed.`

const statusExample = `  # The state now
  kubectl slipway status webapp/shop

  # Follow a rollout until it ends, in a pipeline
  kubectl apply -f shop.yaml && kubectl slipway status webapp/shop --watch --timeout 10m

  # For a program
  kubectl slipway status webapp/shop -o json`

type statusOptions struct {
	*command.Program
	output  command.Format
	watch   bool
	timeout time.Duration
}

// NewStatusCommand makes the command status.
func NewStatusCommand(p *command.Program) *cobra.Command {
	o := &statusOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "status webapp/NAME",
		Short:             "Show the state of a WebApp, or follow its rollout",
		Long:              statusLong,
		Example:           statusExample,
		Args:              command.OneTarget,
		ValidArgsFunction: p.CompleteOf(command.WebAppKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "follow the rollout until it is ready or has failed")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --watch, how long to wait at most; 0: no limit")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, argument string) error {
	if o.timeout < 0 || (o.timeout > 0 && !o.watch) {
		return command.UsageErrorf("--timeout must be positive, and needs --watch")
	}
	clients, app, err := o.Target(ctx, argument)
	if err != nil {
		return err
	}
	if o.watch {
		return follow(ctx, o.Program, clients, app, o.output, o.timeout)
	}
	view := statusOf(app)
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, view)
	}
	return printStatus(o.Streams.Out, view, o.Clock.Now())
}

// endedWith turns the verdict at the end of a watch into the command's result.
func endedWith(p *command.Program, output command.Format, name, replicas, image string, v health.Verdict) error {
	if v.State != health.Healthy {
		return &command.ExitError{
			Code:    command.ExitNotReady,
			Message: fmt.Sprintf("error: %s is not ready: %s", command.WebAppRef(name), command.Because(v.Reason, v.Message)),
		}
	}
	if output != command.FormatTable {
		return nil
	}
	_, err := fmt.Fprintf(p.Streams.Out, "%s is ready: %s replicas of %s\n", command.WebAppRef(name), replicas, command.Printable(image))
	return err
}
