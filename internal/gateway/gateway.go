// Package gateway assembles the data plane: the source of the configuration, the proxy, and
// the admin port.
//
//	cluster.go     following an APIGateway in the cluster
//	file.go        following a configuration file
//	gateway.go     Options, Run, and starting and ending the parts
//	gatewayapi.go  following a Gateway of the Gateway API
//	metrics.go     metrics of the configuration that is served
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/admin"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/settings"
	"github.com/slipway-dev/slipway/internal/gateway/tracing"
)

// lastTraces bounds how long sending the last traces may take.
const lastTraces = 3 * time.Second

// Options configures a gateway.
type Options struct {
	// ConfigFile is the file with the APIGateway, its backends and its secrets.
	ConfigFile string
	// Gateway and Namespace name the object to follow in the cluster, and Kind its kind:
	// KindAPIGateway or KindGateway. They are used when ConfigFile is empty. Default of Kind:
	// KindAPIGateway.
	Kind      string
	Gateway   string
	Namespace string
	// Namespaces are the only namespaces of which routes, Services and grants are read, for
	// KindGateway. Default: all.
	Namespaces []string
	// BorrowedCertificates is the name of the Secret with the certificates of other
	// namespaces, for KindGateway. Optional.
	BorrowedCertificates string
	// Settings are what the operator sets of the pods, for KindGateway.
	Settings settings.Settings
	// Access configures the access to the API server. Default: the service account of the
	// pod.
	Access *rest.Config
	// Version is the version of the program, for /revision.
	Version string
	// HTTP, HTTPS and Admin are the addresses to listen on, as host:port. Empty: no
	// listener. A Gateway says itself on which ports to listen, so HTTP and HTTPS are not used.
	HTTP  string
	HTTPS string
	Admin string
	// Peers is where the other replicas reach this one for shared rate limits, as host:port. It
	// is only listened on while there is such a limit. Default: port 15022.
	Peers string
	// DrainDelay is how long a gateway that ends keeps serving while it reports that it is
	// not ready. DrainTimeout then bounds how long requests and streams may take.
	DrainDelay   time.Duration
	DrainTimeout time.Duration
	// TraceEndpoint is the http or https address of the collector of OpenTelemetry spans.
	// Default: none. TraceSamplePercent is the percentage of requests that are traced, from
	// 0 to 100. It does not hold for requests whose client has decided about sampling.
	TraceEndpoint      string
	TraceSamplePercent float64
	// FetchFrom are addresses from which keys and log-ins may be fetched although they are the pod's own, the machine's, of the link
	// or of a cloud's metadata (dialguard). Default: none.
	FetchFrom []netip.Prefix
	// Memory is how many bytes of memory the container may use. 0: there is no limit.
	Memory int64
	// AccessLog receives one line for each request. Default: no access log.
	AccessLog io.Writer
	// Log receives all other log lines.
	Log *slog.Logger
	// Listening is called with the addresses once the listeners are open. Optional.
	Listening func(http, https, admin net.Addr)
}

// These are the kinds of objects that a gateway serves.
const (
	KindAPIGateway = "APIGateway"
	KindGateway    = "Gateway" // of the Gateway API
)

// gateway is a running gateway.
type gateway struct {
	options      Options
	clock        clock.WithTicker
	handler      *proxy.Handler
	certificates *proxy.Certificates
	server       *proxy.Server
	admin        *admin.Handler
	shared       *peers.Shared
	board        *document.Board
	panics       *panics.Log
	traces       *trace.TracerProvider // nil: no traces
	adminPort    int32                 // 0: none
	opened       atomic.Bool           // the ports of a Gateway
	// keysMissingChanged gets a value when the set of missing public keys has changed.
	keysMissingChanged chan struct{}
	// sharedChanged gets a value when replicas may reach each other no longer, or again.
	sharedChanged chan struct{}
}

// Run serves until the context ends. Then it waits for the requests in flight.
func Run(ctx context.Context, options Options) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	g := &gateway{options: options, clock: clock.RealClock{}, certificates: new(proxy.Certificates), keysMissingChanged: make(chan struct{}, 1), sharedChanged: make(chan struct{}, 1)}
	g.panics = panics.NewLog(options.Log, g.clock)
	g.shared = g.newShared()
	var metrics prometheus.Registerer = registry
	identity := "" // of a Gateway
	if options.Kind == KindGateway {
		options.HTTP, options.HTTPS = "", ""
		identity = options.Namespace + "/" + options.Gateway
		metrics = prometheus.WrapRegistererWith(prometheus.Labels{"gateway": identity}, registry)
	}
	serving := proxy.Options{
		AccessLog: options.AccessLog, Gateway: identity, Identity: options.Kind + " " + options.Namespace + "/" + options.Gateway, Metrics: metrics, Realm: options.Gateway, Memory: options.Memory,
		KeysFailing: g.keysFailing, ProviderFailing: g.providerFailing, KeysMissingChanged: func() { signal(g.keysMissingChanged) }, HealthChanged: g.healthChanged, Panics: g.panics.Report,
		Guard: &dialguard.Guard{Allowed: options.FetchFrom},
	}
	if options.ConfigFile == "" { // a gateway that runs from a file has no replicas, and its owner says what its backends are
		serving.Shared = g.shared
		serving.Backends = &dialguard.Guard{Own: func(port uint16) bool { return int32(port) != g.adminPort }}
	}
	if options.TraceEndpoint != "" {
		traces, err := newTraces(ctx, options)
		if err != nil {
			return err
		}
		g.traces, serving.Tracer = traces, traces.Tracer("github.com/slipway-dev/slipway/internal/gateway")
	}
	listeners, err := listen(ctx, options)
	if err != nil {
		return err
	}
	if at, ok := address(listeners[2]).(*net.TCPAddr); ok {
		g.adminPort = int32(at.Port)
	}
	g.handler = proxy.New(serving)
	g.board = document.NewBoard(g.clock, options.Version)
	metrics.MustRegister(newStates(g.handler, g.certificates, g.board, g.shared, g.panics))
	g.admin = admin.New(g.ready, registry, g.board)
	balancer, err := options.loadBalancer()
	if err != nil {
		return err
	}
	g.server = proxy.NewServer(g.handler, proxy.ServerOptions{
		LoadBalancer: balancer,
		HTTP:         listeners[0], HTTPS: listeners[1], Certificates: g.certificates, DrainTimeout: options.DrainTimeout,
		ErrorLog: slog.NewLogLogger(options.Log.Handler(), slog.LevelDebug),
	})
	if options.Listening != nil {
		options.Listening(address(listeners[0]), address(listeners[1]), address(listeners[2]))
	}
	return g.run(ctx, listeners[2])
}

// newShared is what counts requests for all replicas. The Secret by which they know each other is another one for each kind.
func (g *gateway) newShared() *peers.Shared {
	secret, key := quota.SecretName(g.options.Gateway), quota.SecretKey
	if g.options.Kind == KindGateway {
		secret, key = g.options.BorrowedCertificates, copied.ReplicasKey
	}
	return peers.NewShared(peers.SharedOptions{
		Address: cmp.Or(g.options.Peers, net.JoinHostPort("", strconv.Itoa(peers.Port))),
		Scope:   cmp.Or(g.options.Kind, KindAPIGateway) + " " + g.options.Namespace + "/" + g.options.Gateway,
		Secret:  secret, SecretKey: key,
		Clock: g.clock, Changed: func() { signal(g.sharedChanged) }, Panics: g.panics.Report,
	})
}

// loadBalancer is what begins connections with a header. It returns nil for none.
func (o *Options) loadBalancer() (*proxy.LoadBalancer, error) {
	if o.Kind != KindGateway || !o.Settings.ProxyProtocol {
		return nil, nil // nil means without
	}
	sources, err := o.Settings.Sources()
	if err != nil {
		return nil, err
	}
	return &proxy.LoadBalancer{Sources: sources}, nil
}

func (g *gateway) keysFailing(address string, err error) {
	g.options.Log.Warn("public keys are out of reach, the last good ones stay", "address", address, "error", err)
}

func (g *gateway) providerFailing(issuer string, err error) {
	g.options.Log.Warn("an OpenID Connect provider is out of reach, what it published last stays", "issuer", issuer, "error", err)
}

// signal makes the reader of a channel look again.
func signal(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default: // a value waits already, so the reader will see this change too
	}
}

func (g *gateway) healthChanged(backend, endpoint string, err error) {
	if err != nil {
		g.options.Log.Warn("an endpoint is unhealthy", "backend", backend, "endpoint", endpoint, "error", err)
		return
	}
	g.options.Log.Info("an endpoint is healthy again", "backend", backend, "endpoint", endpoint)
}

// run runs the parts. If one fails, all of them end.
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
	adminServer := admin.NewServer(g.admin)
	if adminListener != nil {
		part("serve the admin port", func() error { return ignoreClosed(adminServer.Serve(admin.Limit(adminListener))) })
	}
	part("serve", func() error { return g.server.Run(base) })
	part("stand by", func() error { g.standBy(ctx); return nil })
	follow := g.followCluster
	switch {
	case g.options.ConfigFile != "":
		follow = g.followFile
	case g.options.Kind == KindGateway:
		follow = g.followGateway
	}
	// Follow changes until the last request has ended, because endpoints change meanwhile.
	following, stopFollowing := context.WithCancel(base)
	defer stopFollowing()
	part("follow the configuration", func() error { return follow(following) })
	<-ctx.Done()
	g.drain(base)
	stopFollowing()
	g.shared.Set(base, peers.Settings{})
	g.sendTraces(base)
	_ = adminServer.Close()
	wait.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// standBy turns the server's standby on and off as the board says, until the context ends.
// In standby the server sends clients to other replicas.
func (g *gateway) standBy(ctx context.Context) {
	for {
		standby, until, changed := g.board.Standby()
		g.server.Standby(standby)
		var over <-chan time.Time
		if !until.IsZero() {
			over = g.clock.After(until.Sub(g.clock.Now()))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-over:
		}
	}
}

// drain reports that the gateway is leaving, waits, and then shuts down.
func (g *gateway) drain(ctx context.Context) {
	g.admin.Leave()
	g.server.Drain()
	if g.handler.Ready() { // without a table no traffic was sent here
		<-g.clock.After(g.options.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.DrainTimeout)
	defer cancel()
	if err := g.server.Shutdown(ctx); err != nil {
		g.options.Log.Warn("requests were cut at the end", "error", err)
	}
}

func newTraces(ctx context.Context, options Options) (*trace.TracerProvider, error) {
	instance, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the own name: %w", err)
	}
	return tracing.New(ctx, tracing.Options{
		Endpoint: options.TraceEndpoint, SamplePercent: options.TraceSamplePercent, Version: options.Version,
		Kind: cmp.Or(options.Kind, KindAPIGateway), Gateway: options.Gateway, Namespace: options.Namespace, Instance: instance,
	})
}

// sendTraces sends the last spans.
func (g *gateway) sendTraces(ctx context.Context) {
	if g.traces == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lastTraces)
	defer cancel()
	if err := g.traces.Shutdown(ctx); err != nil {
		g.options.Log.Warn("the last traces are lost", "error", err)
	}
}

// listen opens the listeners in the order HTTP, HTTPS, admin. One without an address is
// nil.
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
