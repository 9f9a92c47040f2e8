package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

// Options configures a Source.
type Options struct {
	// Access is how the API server is reached.
	Access *rest.Config
	// Namespace and Name are those of the APIGateway.
	Namespace string
	Name      string
	// Clock is where the time comes from.
	Clock clock.Clock
	// Log is where it is told what is served and what fails.
	Log *slog.Logger
	// Board is where it is published what is served.
	Board *revision.Board
	// Apply serves a configuration. When it returns every new request is served by it.
	Apply func(Config) error
	// MissingKeys tells the addresses from which public keys could not be fetched yet, for
	// what is served. Optional.
	MissingKeys func() map[string]bool
	// MissingKeysChanged gets a value when that has changed. Optional.
	MissingKeysChanged <-chan struct{}
}

// Config is the configuration of a gateway.
type Config struct {
	Proxy        proxy.Config
	Certificates []proxy.Certificate
}

// Source follows the API server.
type Source struct {
	options Options

	gateways *shelf[*object, version]
	services *shelf[*corev1.Service, service]
	slices   *shelf[*discoveryv1.EndpointSlice, slice]
	secrets  secrets
	keyring  keyring
	// named are the Services whose changes matter.
	named     atomic.Pointer[map[string]bool]
	woken     chan struct{}
	following sync.WaitGroup

	// What follows belongs to the goroutine of Run.

	seen     version // the newest
	target   *target // the newest that can be read
	served   *target // what is served; the target, except while that waits for Secrets
	rejected *revision.Rejected
	told     revision.Document
}

// New returns a Source.
func New(options Options) *Source {
	s := &Source{options: options, woken: make(chan struct{}, 1)}
	s.named.Store(&map[string]bool{})
	s.gateways = &shelf[*object, version]{
		keep: keepVersion, same: sameVersion,
		changed:  func(_, _ *version) { s.wake() },
		replaced: s.wake,
	}
	s.services = &shelf[*corev1.Service, service]{
		keep: keepService, same: sameService,
		changed:  func(before, after *service) { s.wakeFor(nameOfService(before), nameOfService(after)) },
		replaced: s.wake,
	}
	s.slices = &shelf[*discoveryv1.EndpointSlice, slice]{
		keep: keepSlice, same: sameSlice,
		changed:  func(before, after *slice) { s.wakeFor(serviceOf(before), serviceOf(after)) },
		replaced: s.wake,
	}
	s.secrets = secrets{clock: options.Clock, wake: s.wake, watched: map[string]*watchedSecret{}}
	return s
}

func nameOfService(s *service) string { return value(s).name }

func serviceOf(s *slice) string { return value(s).service }

// wake makes the loop look at everything.
func (s *Source) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // it will anyway
	}
}

// wakeFor does so if one of the Services matters.
func (s *Source) wakeFor(services ...string) {
	named := *s.named.Load()
	for _, name := range services {
		if named[name] {
			s.wake()
			return
		}
	}
}

// wakeForKeys does so whenever it has changed which public keys are missing.
func (s *Source) wakeForKeys(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.options.MissingKeysChanged:
			s.wake()
		}
	}
}

// Run follows until the context ends. It returns an error only when it cannot begin.
func (s *Source) Run(ctx context.Context) error {
	c, err := newClients(s.options.Access, s.options.Namespace)
	if err != nil {
		return err
	}
	s.follow(ctx, "APIGateway", c.list(c.slipway, "apigateways", s.options.Name), &object{}, s.gateways, nil)
	s.follow(ctx, "Services", c.list(c.core, "services", ""), &corev1.Service{}, s.services, nil)
	s.follow(ctx, "EndpointSlices", c.list(c.discovery, "endpointslices", ""), &discoveryv1.EndpointSlice{}, s.slices, nil)
	s.secrets.watch = func(ctx context.Context, name string, shelf *secretShelf, failed func(error)) {
		s.follow(ctx, "Secret "+name, c.list(c.core, "secrets", name), &corev1.Secret{}, shelf, failed)
	}
	s.following.Go(func() { s.wakeForKeys(ctx) })
	s.loop(ctx)
	s.following.Wait()
	return nil
}

// follow keeps a shelf filled in the background, until the context ends. failed, if not
// nil, is told why nothing could be read.
func (s *Source) follow(ctx context.Context, what string, from cache.ListerWatcher, kind any, shelf cache.ReflectorStore, failed func(error)) {
	last := ""
	s.following.Go(func() {
		reflect(ctx, what, from, kind, shelf, func(err error) {
			if text := err.Error(); text != last { // the same for an hour is one line
				last = text
				s.options.Log.Warn("cannot read from the API server, what was read before is used", "what", what, "error", err)
			}
			if failed != nil {
				failed(err)
			}
		})
	})
}
