// Command slipway-gateway serves traffic as an APIGateway says.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/internal/gateway"
)

// version is set by the linker.
var version = "dev"

func main() {
	var options gateway.Options
	var accessLog, showVersion bool
	flags := pflag.NewFlagSet("slipway-gateway", pflag.ExitOnError)
	flags.StringVar(&options.ConfigFile, "config", "", "file with an APIGateway and the addresses of its backends (required)")
	flags.StringVar(&options.HTTP, "http", ":8080", "where HTTP is served; empty for nowhere")
	flags.StringVar(&options.HTTPS, "https", "", "where HTTPS is served; empty for nowhere")
	flags.StringVar(&options.Admin, "admin", ":8081", "where /readyz and /metrics are served; empty for nowhere")
	flags.DurationVar(&options.DrainDelay, "drain-delay", 5*time.Second, "how long to serve on after the signal to end, while not ready")
	flags.DurationVar(&options.DrainTimeout, "drain-timeout", 30*time.Second, "how long requests and streams may take to end after that")
	flags.BoolVar(&accessLog, "access-log", true, "write a line of JSON per request to standard output")
	flags.BoolVar(&showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fail(err)
	}
	if showVersion {
		fmt.Println(version)
		return
	}
	if options.ConfigFile == "" {
		fail(errors.New("--config is required"))
	}
	if accessLog {
		options.AccessLog = os.Stdout
	}
	options.Log = slog.New(slog.NewJSONHandler(os.Stderr, nil))
	options.Log.Info("starting", "version", version)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := gateway.Run(ctx, options); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "slipway-gateway:", err)
	os.Exit(1)
}
