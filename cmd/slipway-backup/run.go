package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// program is what the commands have in common.
type program struct {
	output     io.Writer
	resultFile string
	interval   time.Duration
	// timeout ends one call of the storage. Zero: the default of the engine.
	timeout time.Duration
	// clock is the repository's. Time limits and progress go by the machine's.
	clock clock.PassiveClock
}

// work is one run of a command.
type work struct {
	config  mover.Config
	options engine.Options
	meter   *engine.Meter
	result  *result
	// now tells the time of the repository.
	now func() time.Time
}

// commands are the subcommands.
var commands = map[string]func(context.Context, *work) error{
	"snapshot": takeSnapshot,
	"verify":   onRepository(verify),
	"restore":  onRepository(restore),
	"compare":  onRepository(compareDrill),
	"expire":   onRepository(expire),
	"maintain": onRepository(maintain),
	"list":     onRepository(list),
	"delete":   deleteRepository,
}

func commandNames() []string { return slices.Sorted(maps.Keys(commands)) }

// run runs a command, tells what came of it, and returns the exit code.
func (p program) run(ctx context.Context, command, configFile string) int {
	w := &work{meter: &engine.Meter{}, result: &result{Command: command}, now: p.clock.Now}
	var err error
	w.config, err = readConfig(configFile)
	if err == nil {
		w.options, err = optionsOf(w.config.Repository)
	}
	if err != nil {
		err = &engine.Error{Kind: engine.KindInvalid, Doing: "read the configuration", Err: err}
	}
	w.options.Clock, w.options.OperationTimeout = p.repositoryClock(), p.timeout
	scrub := newScrubber(secretsOf(w.options))
	log := slog.New(slog.NewJSONHandler(p.output, &slog.HandlerOptions{ReplaceAttr: scrub.attribute}))
	slog.SetDefault(log) // the HTTP client of Go logs by itself, and quotes what a server sent
	if folder := w.options.Location.Filesystem; folder != nil && folder.Shared {
		syscall.Umask(0) // it would take the rights of the others away
	}
	if err == nil {
		log.Info("starting", "version", version, "command", command, "repository", w.options.Location.String())
		stop := p.reportProgress(log, w.meter)
		err = commands[command](ctx, w)
		stop()
	}
	w.result.conclude(err)
	if command == "list" && err == nil {
		for _, s := range w.result.Snapshots {
			log.Info("snapshot", "snapshot", s)
		}
	}
	if written := p.reportResult(scrub, w.result); written != nil {
		log.Error("the result could not be written", "error", written)
		err = errors.Join(err, written)
	}
	if err != nil {
		log.Error("failed", "kind", engine.KindOf(err), "error", err)
		return exitCode(err)
	}
	log.Info("done", "result", w.result)
	return 0
}

// repositoryClock is nil for the clock of the machine, so that files keep the time that the machine gives them.
func (p program) repositoryClock() clock.PassiveClock {
	if _, real := p.clock.(clock.RealClock); real {
		return nil
	}
	return p.clock
}

// reportProgress writes a line from time to time until the function that it returns is called.
func (p program) reportProgress(log *slog.Logger, meter *engine.Meter) (stop func()) {
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		ticker := time.NewTicker(p.interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				log.Info("progress", "progress", meter.Progress())
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
	}
}

// reportResult writes the result. The file is not replaced: in a pod it is a mount of its own.
func (p program) reportResult(scrub *scrubber, r *result) error {
	if p.resultFile == "" {
		return nil
	}
	raw, err := r.marshal(scrub)
	if err != nil {
		return err
	}
	return os.WriteFile(p.resultFile, raw, 0o644)
}
