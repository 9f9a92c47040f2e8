package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Exit codes, for scripts.
const (
	ExitNotReady    = 1
	ExitTimeout     = 2
	ExitInterrupted = 130
)

// Options is what the program gives to the commands.
type Options struct {
	// Version is the version of the program.
	Version string
	// Streams are its input and output.
	Streams genericiooptions.IOStreams
	// Terminal reports whether the output is a terminal, on which a line can be rewritten.
	Terminal bool
	// Colour reports whether the output may have colours.
	Colour bool
	// Clock gives the time from which ages are computed.
	Clock clock.PassiveClock
}

// ExitError is an error with its own exit code. The message is printed unchanged. An empty
// message means that everything was printed already.
type ExitError struct {
	Code    int
	Message string
	usage   bool
	// NotFound reports whether the object that was named does not exist.
	NotFound bool
}

// Error returns the message.
func (e *ExitError) Error() string { return e.Message }

// UsageErrorf is an error of who wrote the command line. How to get help is printed below it.
func UsageErrorf(format string, args ...any) error {
	return &ExitError{Code: ExitNotReady, Message: fmt.Sprintf(format, args...), usage: true}
}

// Program is what all commands share.
type Program struct {
	Options
	Flags *genericclioptions.ConfigFlags
}

// Run runs a command line and returns the exit code. add adds the commands that there are.
func Run(ctx context.Context, options Options, args []string, add func(p *Program, root *cobra.Command)) int {
	root := newRoot(options, add)
	root.SetArgs(append([]string{}, args...)) // with nil, cobra would use the arguments of the process
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	exit := &ExitError{Code: ExitNotReady}
	if !errors.As(err, &exit) {
		exit.Message = "error: " + err.Error()
	}
	if exit.usage {
		exit.Message = fmt.Sprintf("error: %s\nSee '%s --help' for how to use it.", exit.Message, cmd.CommandPath())
	}
	if exit.Message != "" {
		fmt.Fprintln(options.Streams.ErrOut, exit.Message)
	}
	return exit.Code
}

// newRoot makes the command that all others belong to.
func newRoot(options Options, add func(p *Program, root *cobra.Command)) *cobra.Command {
	p := &Program{Options: options, Flags: genericclioptions.NewConfigFlags(true)}
	// As kubectl does. Without it they are lines of a log.
	warnings := rest.NewWarningWriter(options.Streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	p.Flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.UserAgent = "kubectl-slipway/" + options.Version
		// These are kubectl's limits. The defaults of client-go are lower, because they are
		// made for controllers.
		config.QPS, config.Burst = 50, 300
		config.WarningHandler = warnings
		return config
	}
	root := &cobra.Command{
		Use:           "kubectl-slipway",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipway"},
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(options.Streams.In)
	root.SetOut(options.Streams.Out)
	root.SetErr(options.Streams.ErrOut)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return UsageErrorf("%v", err) })
	p.Flags.AddFlags(root.PersistentFlags())
	p.completeFlags(root)
	add(p, root)
	return root
}
