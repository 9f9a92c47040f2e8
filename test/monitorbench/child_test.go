//go:build monitorbench

package monitorbench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	_ "net/http/pprof" // the profiles of the child
	"os"
	"os/signal"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/slipway-dev/slipway/internal/monitor/app"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/web"
)

const (
	childEnv    = "BENCH_CHILD"
	monitorRole = "monitor"
	plainRole   = "plain"
)

// child is this binary when it is what is measured.
func child(role string) error {
	var configFile, kubeconfig string
	flags := pflag.NewFlagSet(role, pflag.ContinueOnError)
	flags.StringVar(&configFile, "config", "", "")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if role == plainRole {
		return runPlain(ctx, access)
	}
	// From here on as in cmd/slipway-monitor.
	options := app.Options{Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	klog.SetSlogLogger(options.Log)
	if options.Config, err = config.Read(configFile); err != nil {
		return err
	}
	alarms := &app.Rules{}
	options.Extension = watched{Answers: &app.Answers{Rules: alarms, Page: web.Files()}, Rules: alarms}
	return app.Run(ctx, access, options)
}

// watched is what the monitor has on top of its recorder, and who looks at it.
type watched struct {
	*app.Answers
	*app.Rules
}

// Run serves figures, tells what is stored if that is wanted, and does what else there is to do.
func (w watched) Run(ctx context.Context, parts app.Parts) error {
	serveDebug(func(now *inside) {
		stats := parts.Store.Stats()
		now.Bytes, now.StateBytes, now.SnapshotBytes = stats.Bytes, stats.StateBytes, stats.SnapshotBytes
		now.Changes, now.Written, now.Commits = stats.Changes, stats.Written, stats.Commits
	})
	if path := os.Getenv("BENCH_CHILD_TOLD"); path != "" {
		go func() {
			if err := tell(ctx, parts, path); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	return w.Rules.Run(ctx, parts)
}

// serveDebug serves figures and profiles, until the process ends.
func serveDebug(more func(*inside)) {
	http.HandleFunc("GET /inside", func(w http.ResponseWriter, _ *http.Request) {
		runtime.GC()
		runtime.GC() // what has a finalizer goes with the second
		samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
		metrics.Read(samples)
		now := inside{Heap: int64(samples[0].Value.Uint64()), Stacks: int64(samples[1].Value.Uint64()), Goroutines: int64(runtime.NumGoroutine())}
		more(&now)
		_ = json.NewEncoder(w).Encode(now)
	})
	go func() {
		server := &http.Server{Addr: os.Getenv("BENCH_CHILD_DEBUG"), ReadHeaderTimeout: time.Second}
		fmt.Fprintln(os.Stderr, server.ListenAndServe())
	}()
}

// tell writes for each change that is on the disk its resource version, and when that was known.
func tell(ctx context.Context, parts app.Parts, path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	subscription := parts.Recorder.Subscribe(1<<20, nil)
	defer subscription.Close()
	for {
		updates, missed, err := subscription.Next(ctx)
		if err != nil || missed > 0 {
			return err
		}
		now, out := time.Now().UnixNano(), bufio.NewWriter(file)
		for i := range updates {
			for j := range updates[i].Records {
				fmt.Fprintln(out, updates[i].Records[j].ResourceVersion, now)
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}
