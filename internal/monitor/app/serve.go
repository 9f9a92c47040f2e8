package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

const (
	headerTimeout = 10 * time.Second
	closeTimeout  = 5 * time.Second
)

// readiness says whether the monitor follows the definitions. While it does not, a restart does not help.
type readiness struct {
	mutex    sync.Mutex
	problem  error
	coverage func() supervisor.Coverage
}

func (r *readiness) set(problem error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.problem = problem
}

func (r *readiness) follow(coverage func() supervisor.Coverage) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.problem, r.coverage = nil, coverage
}

func (r *readiness) check() error {
	r.mutex.Lock()
	problem, coverage := r.problem, r.coverage
	r.mutex.Unlock()
	switch {
	case problem != nil:
		return problem
	case coverage == nil:
		return errors.New("the store is being opened")
	}
	if now := coverage(); !now.Complete || now.Definitions.State != supervisor.Live {
		return fmt.Errorf("the definitions are not followed: %s: %s", now.Definitions.State, now.Definitions.Reason)
	}
	return nil
}

// serve begins to serve probes and metrics.
func (a *app) serve(ctx context.Context, servers *sync.WaitGroup, fail func(error)) error {
	probes := http.NewServeMux()
	probes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	probes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.ready.check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	if err := a.listen(ctx, servers, fail, "probes", a.options.Config.Listen.Probes, probes); err != nil {
		return err
	}
	figures := http.NewServeMux()
	figures.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{}))
	return a.listen(ctx, servers, fail, "metrics", a.options.Config.Listen.Metrics, figures)
}

// listen serves until the context ends.
func (a *app) listen(ctx context.Context, servers *sync.WaitGroup, fail func(error), name, address string, handler http.Handler) error {
	if address == config.Off {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", name, err)
	}
	a.log.Info("listening", "for", name, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	servers.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve %s: %w", name, err))
		}
	})
	servers.Go(func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if server.Shutdown(last) != nil {
			_ = server.Close()
		}
	})
	return nil
}
