package why

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-dev/slipway/internal/cli/command"
)

const treeLong = `Show what an object belongs to, and what belongs to it, by owner references, with the health of each.

It works with objects of every kind, and without the monitor: everything is read with your own rights. What you may
not read is named at the end. docs/health.md says how health is judged.`

const treeExample = `  # What belongs to it, and how does each do?
  kubectl slipway tree webapp/shop

  # Whose pod is that?
  kubectl slipway tree pod/shop-6459bf7557-c6ctt

  # A kind by its full name, for a program
  kubectl slipway tree certificates.cert-manager.io/shop-tls -o json`

type treeOptions struct {
	*command.Program
	output command.Format
	limit  int
}

// NewTreeCommand makes the command tree.
func NewTreeCommand(p *command.Program) *cobra.Command {
	o := &treeOptions{Program: p, output: command.FormatTable}
	cmd := &cobra.Command{
		Use:               "tree KIND/NAME",
		Short:             "Show owners and children of an object of any kind, with their health",
		Long:              treeLong,
		Example:           treeExample,
		Args:              oneObject,
		ValidArgsFunction: p.CompleteObjects(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.output.AddFlag(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 500, "how many objects below it to show at most")
	return cmd
}

// oneObject accepts an object of any kind.
func oneObject(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.UsageErrorf("name one object: KIND/NAME")
	}
	if !command.NamesObject(args[0]) {
		return command.UsageErrorf("%q does not name an object: say KIND/NAME", args[0])
	}
	return nil
}

func (o *treeOptions) run(ctx context.Context, argument string) error {
	if o.limit < 1 {
		return command.UsageErrorf("--limit must be at least 1")
	}
	clients, err := o.AnyClients()
	if err != nil {
		return err
	}
	object, kind, err := o.Get(ctx, clients, argument)
	if err != nil {
		return err
	}
	family, err := loadFamily(ctx, clients, object, kind, o.limit)
	if err != nil {
		return err
	}
	view := treeOf(family, o.Clock.Now())
	if o.output != command.FormatTable {
		return o.output.Print(o.Streams.Out, view)
	}
	return printTree(o.Streams.Out, view, o.Clock.Now())
}
