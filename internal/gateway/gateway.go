// Package gateway puts the data plane together: where its configuration comes from, the
// proxy, and what is served beside the traffic.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/admin"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/static"
)

// Options configures a gateway.
type Options struct {
	// ConfigFile is the file with the APIGateway, its backends and its secrets.
	ConfigFile string
	// HTTP, HTTPS and Admin are where is listened, as host:port. Empty: not at all.
	HTTP  string
	HTTPS string
	Admin string
	// DrainDelay is how long a gateway that ends serves on while it says that it is not
	// ready. DrainTimeout bounds the time that requests and streams then have.
	DrainDelay   time.Duration
	DrainTimeout time.Duration
	// AccessLog is where a line per request goes. Default: nowhere.
	AccessLog io.Writer
	// Log is where everything else goes.
	Log *slog.Logger
	// Listening is called with the addresses once they are listened at. Optional.
	Listening func(http, https, admin net.Addr)
}

// gateway is a gateway that runs.
type gateway struct {
	options      Options
	clock        clock.WithTicker
	handler      *proxy.Handler
	certificates *proxy.Certificates
	server       *proxy.Server
	admin        *admin.Handler
}

// Run serves until the context ends, and then until what is under way has ended.
func Run(ctx context.Context, options Options) error {
	listeners, err := listen(ctx, options)
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g := &gateway{
		options: options, clock: clock.RealClock{}, certificates: new(proxy.Certificates),
		handler: proxy.New(proxy.Options{AccessLog: options.AccessLog, Metrics: registry}),
	}
	g.admin = admin.New(g.handler.Ready, registry)
	g.server = proxy.NewServer(g.handler, proxy.ServerOptions{
		HTTP: listeners[0], HTTPS: listeners[1], Certificates: g.certificates,
		ErrorLog: slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	})
	if options.Listening != nil {
		options.Listening(address(listeners[0]), address(listeners[1]), address(listeners[2]))
	}
	return g.run(ctx, listeners[2])
}

// run runs the parts. When one fails all end.
func (g *gateway) run(ctx context.Context, adminListener net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	base := context.WithoutCancel(ctx)
	var wait sync.WaitGroup
	part := func(name string, run func() error) {
		wait.Go(func() {
			if err := run(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	adminServer := &http.Server{Handler: g.admin, ReadHeaderTimeout: 10 * time.Second}
	if adminListener != nil {
		part("serve the admin port", func() error { return ignoreClosed(adminServer.Serve(adminListener)) })
	}
	part("serve", func() error { return g.server.Run(base) })
	part("follow the configuration", func() error {
		return static.Follow(ctx, g.clock, g.options.ConfigFile, g.apply, func(err error) {
			g.options.Log.Error("the configuration is not applied, the one before stays", "error", err)
		})
	})
	<-ctx.Done()
	g.drain(base)
	_ = adminServer.Close()
	wait.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// apply serves a configuration.
func (g *gateway) apply(config *static.Config) error {
	if err := g.certificates.Set(config.Certificates); err != nil {
		return err
	}
	g.handler.Set(config.Proxy)
	for _, problem := range config.Problems {
		g.options.Log.Warn("a route is not served as it is written", "route", problem.Route, "reason", problem.Reason, "message", problem.Message)
	}
	g.options.Log.Info("serving", "routes", len(config.Proxy.Table.Routes), "problems", len(config.Problems))
	return nil
}

// drain lets everybody know that the gateway goes, and then lets it end.
func (g *gateway) drain(ctx context.Context) {
	g.admin.Leave()
	g.server.Drain()
	if g.handler.Ready() { // otherwise nobody has come
		<-g.clock.After(g.options.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.DrainTimeout)
	defer cancel()
	if err := g.server.Shutdown(ctx); err != nil {
		g.options.Log.Warn("requests were cut at the end", "error", err)
	}
}

// listen opens the sockets in the order HTTP, HTTPS, admin; nil where none is wanted.
func listen(ctx context.Context, options Options) ([3]net.Listener, error) {
	var listeners [3]net.Listener
	var config net.ListenConfig
	for i, where := range [...]string{options.HTTP, options.HTTPS, options.Admin} {
		if where == "" {
			continue
		}
		listener, err := config.Listen(ctx, "tcp", where)
		if err != nil {
			for _, open := range listeners[:i] {
				if open != nil {
					_ = open.Close()
				}
			}
			return listeners, fmt.Errorf("listen: %w", err)
		}
		listeners[i] = listener
	}
	return listeners, nil
}

func address(listener net.Listener) net.Addr {
	if listener == nil {
		return nil
	}
	return listener.Addr()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
