// Package app puts the monitor together: the store, the recorder, the supervisor, and what is served.
//
//	app.go        Run
//	extension.go  where the API and the rules are attached
//	api.go        the API
//	gate.go       what the address of the API answers until the store is open
//	key.go        the key with which secrets are hashed
//	rules.go      rules and alarms
//	serve.go      probes, and how everything is served
//	metrics.go    metrics, and who may read them
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/metrics"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// Options are what Run needs. Config and Log must be set.
type Options struct {
	Config config.Config
	Log    *slog.Logger
	// Extension attaches the API and the rules. Nil: there are none.
	Extension Extension
	// ShutdownTimeout is how long what waits for the store may take to get there in the end. Default 20 s.
	ShutdownTimeout time.Duration
}

const (
	// definitionsKind is always followed, so that versions of definitions are kept and their changes are checked.
	definitionsKind = "customresourcedefinitions.apiextensions.k8s.io"
	historyFolder   = "history"
	shutdown        = 20 * time.Second
	openPause       = time.Second
	// commitInterval costs a change at most this delay, and saves most writes to the disk when a kind changes all the time:
	// docs/performance.md has the figures.
	commitInterval = 20 * time.Millisecond
)

// Run records until the context ends. It returns an error when it cannot begin, and nil when it ended in order.
func Run(ctx context.Context, access *rest.Config, options Options) error {
	if options.ShutdownTimeout <= 0 {
		options.ShutdownTimeout = shutdown
	}
	a := &app{options: options, access: access, log: options.Log, clock: clock.RealClock{}, registry: prometheus.NewRegistry()}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	parent := ctx
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	var servers sync.WaitGroup
	defer servers.Wait()
	defer cancel(nil)
	if err := a.serve(ctx, &servers, cancel); err != nil {
		return err
	}
	if err := a.serveAPI(ctx, &servers, cancel); err != nil {
		return err
	}
	history, err := a.open(ctx)
	if err != nil || history == nil {
		return err
	}
	err = a.record(ctx, history, &servers, cancel)
	if parent.Err() == nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(err, history.Close())
}

type app struct {
	options  Options
	access   *rest.Config
	log      *slog.Logger
	clock    clock.RealClock
	registry *prometheus.Registry
	ready    readiness
	gate     gate
}

// open opens the store. While another process has it, or the disk is full, it waits: a restart would not help. It returns nil
// when the context has ended.
func (a *app) open(ctx context.Context) (*store.Store, error) {
	c := &a.options.Config.Store
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return nil, err
	}
	reported := store.Trouble("")
	for {
		s, err := store.Open(ctx, store.Options{
			Dir: filepath.Join(c.Folder, historyFolder), MaxBytes: int64(c.MaxBytes), MaxAge: c.MaxAge(), Clock: a.clock,
			Logger: logr.FromSlogHandler(a.log.Handler()),
			Patch:  func(body []byte, fields []change.Field) ([]byte, error) { return change.Patch(body, fields, nil) },
		})
		var e *store.Error
		if err == nil || !errors.As(err, &e) || e.Trouble == store.Newer || e.Trouble == store.Invalid {
			return s, err
		}
		a.ready.set(fmt.Errorf("the store cannot be opened: %w", err))
		if reported != e.Trouble {
			reported = e.Trouble
			a.log.Error("the store cannot be opened yet", "trouble", e.Trouble, "error", err.Error())
		}
		timer := a.clock.NewTimer(openPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil
		case <-timer.C():
		}
	}
}

// record follows kinds until the context ends, and stores what waits then.
func (a *app) record(ctx context.Context, history *store.Store, servers *sync.WaitGroup, fail func(error)) error {
	policy, key, err := a.policy(ctx, history)
	if err != nil {
		return err
	}
	parts := Parts{
		Store: history, Config: a.options.Config, Access: a.access, Registry: a.registry, Log: a.log, Key: key, Ready: a.ready.check,
	}
	observer, err := a.observer(ctx, &parts)
	if err != nil {
		return err
	}
	r, err := recorder.New(ctx, recorder.Options{
		Store: history, Policy: policy, Observer: observer, Committed: metrics.NewCommits(a.registry), CommitInterval: commitInterval,
		Clock: a.clock, Log: a.log,
	})
	if err != nil {
		return err
	}
	s, err := a.supervisor(r)
	if err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	parts.Recorder, parts.Coverage, parts.CoverageOf = r, s.Coverage, s.CoverageOf
	a.ready.follow(s.Coverage, func() string { return r.Trouble().Words() })
	if err := metrics.Register(a.registry, r, history, s.Coverage); err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	if err := a.extend(ctx, &parts, servers, fail); err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	var group sync.WaitGroup
	group.Go(func() { r.Run(ctx) })
	s.Run(ctx)
	group.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.options.ShutdownTimeout)
	defer cancel()
	if err := r.Close(last); err != nil {
		a.log.Warn("what waits is not stored, and will be asked for again", "error", err.Error())
	}
	return nil
}

func (a *app) supervisor(r *recorder.Recorder) (*supervisor.Supervisor, error) {
	c := &a.options.Config.Kinds
	builtin, err := supervisor.Builtin(append([]string{definitionsKind}, c.Builtin...)...)
	if err != nil {
		return nil, err
	}
	return supervisor.New(a.access, r, supervisor.Options{
		Builtin: builtin, Include: c.Include, Exclude: c.Exclude, MaxKinds: c.Max, MaxObjectBytes: int(c.MaxObjectBytes),
		Trouble: func() (string, time.Time) { now := r.Trouble(); return now.Words(), now.Since },
		Clock:   a.clock, Log: a.log,
	})
}
