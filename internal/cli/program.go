package cli

import (
	"fmt"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

// Exit codes, for scripts.
const (
	exitNotReady    = 1
	exitTimeout     = 2
	exitInterrupted = 130
)

// Options is what the program gives to the commands.
type Options struct {
	// Version is the version of the program.
	Version string
	// Streams are its input and output.
	Streams genericiooptions.IOStreams
	// Terminal tells that the output is a terminal, on which a line can be rewritten.
	Terminal bool
	// Colour tells that the output may have colours.
	Colour bool
	// Clock gives the time from which ages are computed.
	Clock clock.PassiveClock
}

// exitError is an error with its own exit code. The message is printed unchanged. An empty
// message means that everything was printed already.
type exitError struct {
	code    int
	message string
	usage   bool
	// notFound tells that the object that was named does not exist.
	notFound bool
}

func (e *exitError) Error() string { return e.message }

func usageErrorf(format string, args ...any) error {
	return &exitError{code: exitNotReady, message: fmt.Sprintf(format, args...), usage: true}
}

// program is what all commands share.
type program struct {
	Options
	flags *genericclioptions.ConfigFlags
}
