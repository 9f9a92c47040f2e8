// Command kubectl-slipway is the kubectl plugin of Slipway: kubectl slipway status,
// why, history, rollback, backup, restore.
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
)

// version is set when the program is linked.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Options{
		Version: version,
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		// Only a terminal can rewrite a line.
		Terminal: term.IsTerminal(int(os.Stdout.Fd())),
		Clock:    clock.RealClock{},
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
