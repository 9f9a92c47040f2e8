// Command slipway-monitor records every change of every custom resource.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	// The image has no CA roots. Where a system has some, those are used.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipway-dev/slipway/internal/memory"
	"github.com/slipway-dev/slipway/internal/monitor/app"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/web"
	"github.com/slipway-dev/slipway/internal/redact/redactlog"
)

// extension is what is built on top of the recorder.
type extension struct {
	*app.Answers
	*app.Rules
}

// version is set by the linker.
var version = "dev"

func main() {
	var options app.Options
	var configFile, kubeconfig, folder string
	var level slog.Level
	var showVersion bool
	flags := pflag.NewFlagSet("slipway-monitor", pflag.ExitOnError)
	flags.StringVar(&configFile, "config", "", "file with the configuration (default: everything has its default)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "file with the access to the cluster (default: that of the pod, or as kubectl finds it)")
	flags.StringVar(&folder, "store", "", "folder of the history, instead of what the configuration says")
	flags.TextVar(&level, "log-level", slog.LevelInfo, "least level of lines that are logged: DEBUG, INFO, WARN or ERROR")
	flags.DurationVar(&options.ShutdownTimeout, "graceful-shutdown-timeout", 0,
		"how long what waits for the store may take to get there in the end (default 20s)")
	flags.BoolVar(&showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fail(err)
	}
	if showVersion {
		fmt.Println(version)
		return
	}
	var err error
	if options.Config, err = config.Read(configFile); err != nil {
		fail(err)
	}
	if folder != "" {
		options.Config.Store.Folder = folder
	}
	options.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: redactlog.Attribute}))
	klog.SetSlogLogger(options.Log) // client-go logs through klog
	ctrl.SetLogger(logr.FromSlogHandler(options.Log.Handler()))
	if err := memory.KeepBelowLimit(); err != nil {
		options.Log.Warn("the container's memory limit is unknown, Go does not keep below it", "error", err)
	}
	alarms := &app.Rules{}
	options.Extension = extension{
		Answers: &app.Answers{Namespace: os.Getenv("POD_NAMESPACE"), Rules: alarms, Page: web.Files()}, Rules: alarms,
	}
	options.Log.Info("starting", "version", version)
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := app.Run(ctx, access, options); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "slipway-monitor:", err)
	os.Exit(1)
}
