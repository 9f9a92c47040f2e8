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
	// Access configures the access to the API server.
	Access *rest.Config
	// Namespace and Name identify the APIGateway.
	Namespace string
	Name      string
	// Clock gives the time.
	Clock clock.Clock
	// Log receives what is served and what fails.
	Log *slog.Logger
	// Board publishes what is served.
	Board *revision.Board
	// Apply serves a configuration. When it returns, all new requests use it.
	Apply func(Config) error
	// MissingKeys returns the addresses from which no public keys could be fetched yet, for
	// the served configuration. Optional.
	MissingKeys func() map[string]bool
	// MissingKeysChanged gets a value when the result of MissingKeys has changed. Optional.
	MissingKeysChanged <-chan struct{}
}

// Config is the configuration of a gateway.
type Config struct {
	Proxy        proxy.Config
	Certificates []proxy.Certificate
}

// Source gets the configuration from the API server.
type Source struct {
	options Options

	gateways *store[*object, version]
	services *store[*corev1.Service, service]
	slices   *store[*discoveryv1.EndpointSlice, slice]
	secrets  secrets
	keyring  keyring
	// contacts tells whether the stores are up to date.
	contacts *contacts
	// named are the Services whose changes are relevant.
	named     atomic.Pointer[map[string]bool]
	woken     chan struct{}
	following sync.WaitGroup

	// The fields below belong to the goroutine of Run.

	seen     version // the newest version
	target   *target // the newest version that could be parsed
	served   *target // what is served: the target, or an earlier one while the target waits for Secrets
	rejected *revision.Rejected
	told     revision.Document
	view     *revision.View // the view when the served data was read
}

// New returns a Source.
func New(options Options) *Source {
	s := &Source{options: options, woken: make(chan struct{}, 1), contacts: newContacts(options.Clock)}
	s.named.Store(&map[string]bool{})
	s.gateways = &store[*object, version]{
		keep: keepVersion, same: sameVersion,
		changed:  func(_, _ *version) { s.wake() },
		replaced: s.wake,
	}
	s.services = &store[*corev1.Service, service]{
		keep: keepService, same: sameService,
		changed:  func(before, after *service) { s.wakeFor(nameOfService(before), nameOfService(after)) },
		replaced: s.wake,
	}
	s.slices = &store[*discoveryv1.EndpointSlice, slice]{
		keep: keepSlice, same: sameSlice,
		changed:  func(before, after *slice) { s.wakeFor(serviceOf(before), serviceOf(after)) },
		replaced: s.wake,
	}
	s.secrets = secrets{clock: options.Clock, wake: s.wake, watched: map[string]*watchedSecret{}}
	return s
}

func nameOfService(s *service) string { return value(s).name }

func serviceOf(s *slice) string { return value(s).service }

// wake makes the loop look at the current state.
func (s *Source) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // a signal waits already
	}
}

// wakeFor wakes the loop if one of the Services is relevant.
func (s *Source) wakeFor(services ...string) {
	named := *s.named.Load()
	for _, name := range services {
		if named[name] {
			s.wake()
			return
		}
	}
}

// wakeForKeys wakes the loop whenever the set of missing public keys has changed.
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

// Run follows the API server until the context ends. It returns an error only if it cannot
// start.
func (s *Source) Run(ctx context.Context) error {
	c, err := newClients(s.options.Access, s.options.Namespace)
	if err != nil {
		return err
	}
	follow(ctx, s, "APIGateway", "", c.list(c.slipway, "apigateways", s.options.Name), &object{}, s.gateways, nil)
	follow(ctx, s, "Services", "", c.list(c.core, "services", ""), &corev1.Service{}, s.services, nil)
	follow(ctx, s, "EndpointSlices", "", c.list(c.discovery, "endpointslices", ""), &discoveryv1.EndpointSlice{}, s.slices, nil)
	s.secrets.watch = func(ctx context.Context, name string, store *secretStore, failed func(error)) {
		follow(ctx, s, "Secrets", name, c.list(c.core, "secrets", name), &corev1.Secret{}, store, failed)
	}
	s.following.Go(func() { s.wakeForKeys(ctx) })
	s.following.Go(func() { s.contacts.run(ctx, s.wake) })
	s.loop(ctx)
	s.following.Wait()
	return nil
}

// follow keeps a store up to date in the background, until the context ends. If name is not
// empty, only the object with this name is followed. failed is called with each error, if
// it is not nil.
func follow[O metav1.Object, T any](
	ctx context.Context, s *Source, what, name string, from *cache.ListWatch, kind any, store *store[O, T], failed func(error),
) {
	last := ""
	heard := s.contacts.add(what)
	replaced := store.replaced
	store.replaced = func() { heard.filled(); replaced() }
	s.following.Go(func() {
		defer s.contacts.remove(heard)
		reflect(ctx, what, heard.through(from), kind, store, func(err error) {
			heard.failed(err)
			if text := err.Error(); text != last { // an error that lasts for an hour is logged once
				last = text
				s.options.Log.Warn("cannot read from the API server, what was read before is used", "what", what, "name", name, "error", err)
			}
			if failed != nil {
				failed(err)
			}
		})
	})
}
