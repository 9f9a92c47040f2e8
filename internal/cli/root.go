package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
)

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, options Options, args []string) int {
	root := newRoot(options)
	root.SetArgs(append([]string{}, args...)) // with nil, cobra would use the arguments of the process
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	exit := &exitError{code: exitNotReady}
	if !errors.As(err, &exit) {
		exit.message = "error: " + err.Error()
	}
	if exit.usage {
		exit.message = fmt.Sprintf("error: %s\nSee '%s --help' for how to use it.", exit.message, cmd.CommandPath())
	}
	if exit.message != "" {
		fmt.Fprintln(options.Streams.ErrOut, exit.message)
	}
	return exit.code
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

func newRoot(options Options) *cobra.Command {
	p := &program{Options: options, flags: genericclioptions.NewConfigFlags(true)}
	// As kubectl does. Without it they are lines of a log.
	warnings := rest.NewWarningWriter(options.Streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	p.flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "kubectl-slipway/" + options.Version
		// These are kubectl's limits. The defaults of client-go are lower, because they are
		// made for controllers.
		config.QPS, config.Burst = 50, 300
		config.WarningHandler = warnings
		return config
	}
	root := &cobra.Command{
		Use:           "kubectl-slipway",
		Short:         "See and steer the applications that Slipway runs",
		Long:          rootLong,
		Example:       rootExample,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipway"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(options.Streams.In)
	root.SetOut(options.Streams.Out)
	root.SetErr(options.Streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageErrorf("%v", err) })
	p.flags.AddFlags(root.PersistentFlags())
	p.completeFlags(root)
	root.AddCommand(
		newStatusCommand(p),
		newWhyCommand(p),
		newTreeCommand(p),
		newWatchCommand(p),
		newHistoryCommand(p),
		newChangesCommand(p),
		newHealthCommand(p),
		newCoverageCommand(p),
		newUICommand(p),
		newRollbackCommand(p),
		newBackupCommand(p),
		newRestoreCommand(p),
		newCRDCommand(p),
		newVersionCommand(p),
	)
	return root
}
