package app

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// Parts are what the monitor is made of, for who attaches something.
type Parts struct {
	Store    *store.Store
	Config   config.Config
	Access   *rest.Config
	Registry *prometheus.Registry
	Log      *slog.Logger
	// Key is secret, of 32 bytes, and the same after a restart.
	Key []byte
	// Ready returns nil while the definitions are followed.
	Ready func() error
	// Recorder, Coverage and CoverageOf are nil while the observer is made.
	Recorder   *recorder.Recorder
	Coverage   func() supervisor.Coverage
	CoverageOf func(kind schema.GroupResource) (supervisor.KindCoverage, bool)
}

// Extension attaches what is built on top of the recorder.
type Extension interface {
	// Observer is asked once, before anything is recorded. It may be nil: then nobody observes.
	Observer(ctx context.Context, parts Parts) (recorder.Observer, error)
	// API is what is served at the address of the API. Until it returns, requests are told to come back later. It may
	// be nil: then nothing is.
	API(ctx context.Context, parts Parts) (http.Handler, error)
	// Run does whatever else has to be done, until the context ends.
	Run(ctx context.Context, parts Parts) error
}

// NoRules is the half of an Extension that observes nothing. The other half is Answers.
type NoRules struct{}

// Observer returns nil.
func (NoRules) Observer(context.Context, Parts) (recorder.Observer, error) { return nil, nil }

// Run does nothing.
func (NoRules) Run(context.Context, Parts) error { return nil }

// observer is where rules are attached.
func (a *app) observer(ctx context.Context, parts *Parts) (recorder.Observer, error) {
	if a.options.Extension == nil {
		return nil, nil
	}
	return a.options.Extension.Observer(ctx, *parts)
}

// extend is where the API is attached.
func (a *app) extend(ctx context.Context, parts *Parts, servers *sync.WaitGroup, fail func(error)) error {
	if a.options.Extension == nil {
		return nil
	}
	handler, err := a.options.Extension.API(ctx, *parts)
	if err != nil {
		return err
	}
	if handler == nil {
		handler = http.NotFoundHandler()
	}
	a.gate.open(handler)
	servers.Go(func() {
		if err := a.options.Extension.Run(ctx, *parts); err != nil && ctx.Err() == nil {
			fail(err)
		}
	})
	return nil
}
