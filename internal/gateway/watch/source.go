package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	// contacts tells whether the shelves are up to date.
	contacts *contacts
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
	view     *revision.View // when what is served was read
}

// New returns a Source.
func New(options Options) *Source {
	s := &Source{options: options, woken: make(chan struct{}, 1), contacts: newContacts(options.Clock)}
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
	follow(ctx, s, "APIGateway", "", c.list(c.slipway, "apigateways", s.options.Name), &object{}, s.gateways, nil)
	follow(ctx, s, "Services", "", c.list(c.core, "services", ""), &corev1.Service{}, s.services, nil)
	follow(ctx, s, "EndpointSlices", "", c.list(c.discovery, "endpointslices", ""), &discoveryv1.EndpointSlice{}, s.slices, nil)
	s.secrets.watch = func(ctx context.Context, name string, shelf *secretShelf, failed func(error)) {
		follow(ctx, s, "Secrets", name, c.list(c.core, "secrets", name), &corev1.Secret{}, shelf, failed)
	}
	s.following.Go(func() { s.wakeForKeys(ctx) })
	s.following.Go(func() { s.contacts.run(ctx, s.wake) })
	s.loop(ctx)
	s.following.Wait()
	return nil
}

// follow keeps a shelf filled in the background, until the context ends. name is that of
// the object where one is followed. failed, if not nil, is told why nothing could be read.
func follow[O metav1.Object, T any](
	ctx context.Context, s *Source, what, name string, from *cache.ListWatch, kind any, shelf *shelf[O, T], failed func(error),
) {
	last := ""
	heard := s.contacts.add(what)
	replaced := shelf.replaced
	shelf.replaced = func() { heard.filled(); replaced() }
	s.following.Go(func() {
		defer s.contacts.remove(heard)
		reflect(ctx, what, heard.through(from), kind, shelf, func(err error) {
			heard.failed(err)
			if text := err.Error(); text != last { // the same for an hour is one line
				last = text
				s.options.Log.Warn("cannot read from the API server, what was read before is used", "what", what, "name", name, "error", err)
			}
			if failed != nil {
				failed(err)
			}
		})
	})
}
