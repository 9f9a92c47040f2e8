package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/server"
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
	// trouble is why the store takes no changes, empty while it does.
	trouble func() string
}

func (r *readiness) set(problem error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.problem = problem
}

func (r *readiness) follow(coverage func() supervisor.Coverage, trouble func() string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.problem, r.coverage, r.trouble = nil, coverage, trouble
}

// degraded says what is wrong with a monitor that is ready. It stays ready while its store takes no changes: a pod that is not ready is no
// endpoint of its Service any more, and nobody could read what the history has, and why it ends.
func (r *readiness) degraded() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.trouble == nil {
		return ""
	}
	return r.trouble()
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

// reported is what everybody may know of it.
func (r *readiness) reported() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.problem != nil {
		return "the history cannot be opened yet; the monitor's log says why"
	}
	return "the monitor is starting, and opens the history"
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
		if why := a.ready.degraded(); why != "" {
			_, _ = w.Write([]byte("degraded: " + why + "\n"))
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	if err := a.listen(ctx, servers, fail, "probes", a.options.Config.Listen.Probes, plainServer(probes)); err != nil {
		return err
	}
	if a.options.Config.Listen.Metrics == config.Off {
		return nil
	}
	figures, err := a.figures()
	if err != nil {
		return err
	}
	return a.listen(ctx, servers, fail, "metrics", a.options.Config.Listen.Metrics, figures)
}

// serveAPI begins to serve the API. Its streams end with the context: they would keep the server from its end.
func (a *app) serveAPI(ctx context.Context, servers *sync.WaitGroup, fail func(error)) error {
	if a.options.Extension == nil {
		return nil
	}
	a.gate.before = server.Starting(a.ready.reported)
	made := server.HTTPServer(&a.gate)
	made.BaseContext = func(net.Listener) context.Context { return ctx }
	return a.listen(ctx, servers, fail, "api", a.options.Config.Listen.API, made)
}

// plainServer serves what is small.
func plainServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
}

// listen serves until the context ends.
func (a *app) listen(ctx context.Context, servers *sync.WaitGroup, fail func(error), name, address string, made *http.Server) error {
	if address == config.Off {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", name, err)
	}
	a.log.Info("listening", "for", name, "address", listener.Addr().String())
	made.ErrorLog = slog.NewLogLogger(a.log.Handler(), slog.LevelDebug) // what clients do wrong, and who hangs up
	servers.Go(func() {
		serve := made.Serve
		if made.TLSConfig != nil {
			serve = func(l net.Listener) error { return made.ServeTLS(l, "", "") }
		}
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve %s: %w", name, err))
		}
	})
	servers.Go(func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if made.Shutdown(last) != nil {
			_ = made.Close()
		}
	})
	return nil
}
