// Command kubectl-slipway is the kubectl plugin of Slipway: kubectl slipway status,
// why, tree, watch, history, rollback, backup, restore.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// version is set when the program is linked.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	terminal := term.IsTerminal(int(os.Stdout.Fd()))
	code := cli.Run(ctx, command.Options{
		Version: version,
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		// Only a terminal can rewrite a line.
		Terminal: terminal,
		// See https://no-color.org.
		Colour: terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Clock:  clock.RealClock{},
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
