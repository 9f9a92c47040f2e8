package watch

import (
	"context"
	"log/slog"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
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
	Board *document.Board
	// Apply serves a configuration. When it returns, all new requests use it. It returns the ports that could not be opened.
	Apply func(Config) (closed map[Port]error, err error)
	// MissingKeys returns the addresses from which no public keys could be fetched yet, for
	// the served configuration. Optional.
	MissingKeys func() map[string]bool
	// MissingKeysChanged gets a value when the result of MissingKeys has changed. Optional.
	MissingKeysChanged <-chan struct{}
	// Shared counts requests for all replicas together.
	Shared Sharing
	// SharedChanged gets a value when Shared.Trouble may have changed. Optional.
	SharedChanged <-chan struct{}
	// Compile makes a table. Nil: apigateway.Compile.
	Compile func(apigateway.Input) (*table.Table, []model.Problem)
}

// Config is the configuration of a gateway.
type Config struct {
	Proxy        proxy.Config
	Certificates []proxy.Certificate
	// Clients is how clients of HTTPS prove who they are. Nil: they need not.
	Clients *proxy.ClientCheck
	// Secure are the listeners of streams that end the TLS of clients.
	Secure []proxy.SecureListener
	// Ports are the ports of streams.
	Ports map[Port]bool
}

// Source gets the configuration from the API server.
type Source struct {
	*follower

	options Options

	gateways *store[*object, version]
	services *store[*corev1.Service, service]
	slices   *store[*discoveryv1.EndpointSlice, slice]
	secrets  secrets
	// configMaps are those with certificates of authorities.
	configMaps configMaps
	keyring    keyring
	// relevant are the Services whose changes are.
	relevant atomic.Pointer[map[string]bool]

	// The fields below belong to the goroutine of Run.

	seen     version // the newest version
	target   *target // the newest version that could be parsed
	served   *target // what is served: the target, or an earlier one while the target waits for Secrets
	rejected *document.Rejected
	view     *document.View // the view when the served data was read
}

// New returns a Source.
func New(options Options) *Source {
	s := &Source{options: options, follower: newFollower(options.Clock, options.Log, options.Board)}
	if s.options.Compile == nil {
		s.options.Compile = apigateway.Compile
	}
	s.relevant.Store(&map[string]bool{})
	s.gateways = &store[*object, version]{
		keep: keepVersion, same: sameVersion,
		changed:  func(_, _ *version) { s.wake() },
		replaced: s.wake,
	}
	s.services = &store[*corev1.Service, service]{
		keep: keepService, same: sameService,
		changed:  func(before, after *service) { s.wakeForServices(nameOfService(before), nameOfService(after)) },
		replaced: s.wake,
	}
	s.slices = &store[*discoveryv1.EndpointSlice, slice]{
		keep: keepSlice, same: sameSlice,
		changed:  func(before, after *slice) { s.wakeForServices(serviceOf(before), serviceOf(after)) },
		replaced: s.wake,
	}
	s.secrets = newSecrets(options.Clock, options.Namespace, s.wake)
	s.configMaps = newConfigMaps(options.Clock, options.Namespace, s.wake)
	return s
}

func nameOfService(s *service) string { return value(s).name.Name }

func serviceOf(s *slice) string { return value(s).service.Name }

// wakeForServices wakes the loop if one of the Services is relevant.
func (s *Source) wakeForServices(services ...string) {
	relevant := *s.relevant.Load()
	for _, name := range services {
		if relevant[name] {
			s.wake()
			return
		}
	}
}

// named returns the name of an object in the namespace of the APIGateway.
func (s *Source) named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: s.options.Namespace, Name: name}
}

// Run follows the API server until the context ends. It returns an error only if it cannot
// start.
func (s *Source) Run(ctx context.Context) error {
	c, err := newClients(s.options.Access, s.options.Namespace)
	if err != nil {
		return err
	}
	follow(ctx, s.follower, subject{kind: "APIGateway"}, c.list(c.slipway, "apigateways", s.options.Name), &object{}, s.gateways, nil)
	follow(ctx, s.follower, subject{kind: "Services"}, c.list(c.core, "services", ""), &corev1.Service{}, s.services, nil)
	follow(ctx, s.follower, subject{kind: "EndpointSlices"}, c.list(c.discovery, "endpointslices", ""), &discoveryv1.EndpointSlice{}, s.slices, nil)
	s.secrets.watch = func(ctx context.Context, name string, store *secretStore, failed func(error)) {
		follow(ctx, s.follower, subject{kind: "Secrets", name: name}, c.list(c.core, "secrets", name), &corev1.Secret{}, store, failed)
	}
	s.configMaps.watch = func(ctx context.Context, name string, store *configMapStore, failed func(error)) {
		follow(ctx, s.follower, subject{kind: "ConfigMaps", name: name}, c.list(c.core, "configmaps", name), &corev1.ConfigMap{}, store, failed)
	}
	s.following.Go(func() { s.wakeFor(ctx, s.options.MissingKeysChanged) })
	s.following.Go(func() { s.wakeFor(ctx, s.options.SharedChanged) })
	s.following.Go(func() { s.contacts.run(ctx, s.wake) })
	s.loop(ctx, s.safeLook)
	s.following.Wait()
	return nil
}
