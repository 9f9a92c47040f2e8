package watch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/settings"
)

// GatewayOptions configures a GatewaySource.
type GatewayOptions struct {
	// Access configures the access to the API server.
	Access *rest.Config
	// Namespace and Name identify the Gateway.
	Namespace string
	Name      string
	// Namespaces are the only namespaces that are read. Empty: all.
	Namespaces []string
	// BorrowedCertificates is the name of the Secret with the certificates of other
	// namespaces (package copied).
	BorrowedCertificates string
	// Settings are what the operator sets of the pods.
	Settings settings.Settings
	// ReservedPorts are ports that no listener can have.
	ReservedPorts []int32
	// Clock gives the time.
	Clock clock.Clock
	// Log receives what is served and what fails.
	Log *slog.Logger
	// Board publishes what is served.
	Board *document.Board
	// MissingKeys returns the addresses from which no public keys could be fetched yet, for the
	// applied configuration. Optional.
	MissingKeys func() map[string]bool
	// MissingKeysChanged gets a value when the result of MissingKeys has changed. Optional.
	MissingKeysChanged <-chan struct{}
	// Shared counts requests for all replicas together. Optional.
	Shared Sharing
	// SharedChanged gets a value when Shared.Trouble may have changed. Optional.
	SharedChanged <-chan struct{}
	// Apply serves a configuration. When it returns, all new requests use it. closed are the
	// ports that could not be opened; they are tried again with the next call.
	Apply func(GatewayConfig) (closed map[Port]error, err error)
	// Build makes the graph of which the table is made. Nil: gatewayapi.Build.
	Build func(gatewayapi.Input) *gatewayapi.Graph
}

// GatewayConfig is the configuration of a gateway that serves a Gateway of the Gateway API.
type GatewayConfig struct {
	Proxy proxy.Config
	// Secure are the listeners with TLS.
	Secure []proxy.SecureListener
	// Ports are the ports of all listeners.
	Ports map[Port]bool
}

// Port is a port of a listener. A number may be one for TCP and one for UDP.
type Port struct {
	Number int32
	Kind   proxy.PortKind
}

// portOf is the port of a listener.
func portOf(l *gatewayapi.Listener) Port {
	switch {
	case l.Secure():
		return Port{l.Port, proxy.PortTLS}
	case l.Protocol == gatewayv1.TCPProtocolType:
		return Port{l.Port, proxy.PortTCP}
	case l.Protocol == gatewayv1.UDPProtocolType:
		return Port{l.Port, proxy.PortUDP}
	default:
		return Port{l.Port, proxy.PortHTTP}
	}
}

type objectStore[T any] = store[*object, T]

// GatewaySource gets the configuration of a Gateway of the Gateway API from the API server.
type GatewaySource struct {
	*follower

	options  GatewayOptions
	everyone map[string]bool // the keys of watches that are about everything that may be read

	gateways   *objectStore[version]
	httpRoutes group[*object, *route]
	grpcRoutes group[*object, *route]
	tlsRoutes  group[*object, *route]
	tcpRoutes  group[*object, *route]
	udpRoutes  group[*object, *route]
	grants     group[*object, grant]
	policies   group[*object, *policy]
	sets       group[*object, *listenerSet]
	attached   group[*object, *attachedPolicy]
	namespaces group[*corev1.Namespace, map[string]string]
	services   group[*corev1.Service, service]
	slices     group[*discoveryv1.EndpointSlice, slice]
	secrets    secrets
	keyring    gatewayKeyring
	// relevant are the Services whose changes are.
	relevant atomic.Pointer[map[types.NamespacedName]bool]
	// relevantSets are the ListenerSets that name the Gateway.
	relevantSets atomic.Pointer[map[types.NamespacedName]bool]
	// relevantTargets are what GatewayPolicies may name so that they matter.
	relevantTargets atomic.Pointer[map[gatewayapi.Target]bool]

	// The fields below belong to the goroutine of Run.

	seen     version        // the newest version of the Gateway
	target   *gatewayTarget // the newest version that could be parsed
	served   *state         // what is served
	rejected *document.Rejected
	view     *document.View // the view when the served data was read
}

// NewGateway returns a GatewaySource.
func NewGateway(options GatewayOptions) *GatewaySource {
	s := &GatewaySource{options: options, follower: newFollower(options.Clock, options.Log, options.Board), everyone: map[string]bool{"": true}}
	if options.Build == nil {
		s.options.Build = gatewayapi.Build
	}
	if len(options.Namespaces) > 0 {
		s.everyone = map[string]bool{}
		for _, namespace := range options.Namespaces {
			s.everyone[namespace] = true
		}
	}
	s.relevant.Store(&map[types.NamespacedName]bool{})
	s.relevantSets.Store(&map[types.NamespacedName]bool{})
	s.relevantTargets.Store(&map[gatewayapi.Target]bool{})
	s.gateways = &objectStore[version]{keep: keepVersion, same: sameVersion, changed: func(_, _ *version) { s.wake() }, replaced: s.wake}
	s.httpRoutes, s.grpcRoutes = s.newRoutes(gatewayapi.HTTPRoute), s.newRoutes(gatewayapi.GRPCRoute)
	s.tlsRoutes, s.tcpRoutes, s.udpRoutes = s.newRoutes(gatewayapi.TLSRoute), s.newRoutes(gatewayapi.TCPRoute), s.newRoutes(gatewayapi.UDPRoute)
	s.grants = newGroup(s.follower, func() *objectStore[grant] {
		return &objectStore[grant]{keep: keepGrant, same: sameGrant, changed: func(_, _ *grant) { s.wake() }, replaced: s.wake}
	})
	s.policies = newGroup(s.follower, func() *objectStore[*policy] {
		return &objectStore[*policy]{
			keep: keepPolicy, same: samePolicy, replaced: s.wake,
			changed: func(before, after **policy) {
				s.wakeForServices(slices.Concat(value(before).services(), value(after).services())...)
			},
		}
	})
	s.sets = newGroup(s.follower, func() *objectStore[*listenerSet] {
		return &objectStore[*listenerSet]{
			keep: keepSet(s.name()), same: sameSet, replaced: s.wake,
			changed: func(before, after **listenerSet) {
				if value(before) != nil || value(after) != nil {
					s.wake()
				}
			},
		}
	})
	s.attached = s.newAttached()
	s.namespaces = newGroup(s.follower, func() *store[*corev1.Namespace, map[string]string] {
		return &store[*corev1.Namespace, map[string]string]{
			keep: func(in *corev1.Namespace) map[string]string { return in.Labels }, same: maps.Equal[map[string]string, map[string]string],
			changed: func(_, _ *map[string]string) { s.wake() }, replaced: s.wake,
		}
	})
	s.services = newGroup(s.follower, func() *store[*corev1.Service, service] {
		return &store[*corev1.Service, service]{
			keep: keepService, same: sameService, replaced: s.wake,
			changed: func(before, after *service) { s.wakeForServices(value(before).name, value(after).name) },
		}
	})
	s.slices = newGroup(s.follower, func() *store[*discoveryv1.EndpointSlice, slice] {
		return &store[*discoveryv1.EndpointSlice, slice]{
			keep: keepSlice, same: sameSlice, replaced: s.wake,
			changed: func(before, after *slice) { s.wakeForServices(value(before).service, value(after).service) },
		}
	})
	s.services.patience, s.slices.patience, s.namespaces.patience = firstPatience, firstPatience, firstPatience
	s.secrets = newSecrets(options.Clock, options.Namespace, s.wake)
	return s
}

func (s *GatewaySource) newRoutes(kind gatewayapi.Kind) group[*object, *route] {
	return newGroup(s.follower, func() *objectStore[*route] {
		return &objectStore[*route]{
			keep: keepRoute(kind, s.name()), same: sameRoute, replaced: s.wake,
			changed: func(before, after **route) {
				if s.concerns(value(before)) || s.concerns(value(after)) {
					s.wake()
				}
			},
		}
	})
}

// routesOfKinds are the routes of each kind.
func (s *GatewaySource) routesOfKinds() []*group[*object, *route] {
	return []*group[*object, *route]{&s.httpRoutes, &s.grpcRoutes, &s.tlsRoutes, &s.tcpRoutes, &s.udpRoutes}
}

// name is that of the Gateway.
func (s *GatewaySource) name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.options.Namespace, Name: s.options.Name}
}

func newGroup[O metav1.Object, T any](f *follower, newStore func() *store[O, T]) group[O, T] {
	return group[O, T]{clock: f.clock, wake: f.wake, newStore: newStore}
}

// wakeForServices wakes the loop if one of the Services is relevant.
func (s *GatewaySource) wakeForServices(services ...types.NamespacedName) {
	relevant := *s.relevant.Load()
	for _, name := range services {
		if relevant[name] {
			s.wake()
			return
		}
	}
}

// Run follows the API server until the context ends. It returns an error only if it cannot
// start.
func (s *GatewaySource) Run(ctx context.Context) error {
	c, err := newClients(s.options.Access, s.options.Namespace)
	if err != nil {
		return err
	}
	follow(ctx, s.follower, subject{kind: "Gateway"}, c.list(c.gateway, "gateways", s.options.Name), &object{}, s.gateways, nil)
	s.httpRoutes.watch = inNamespace[*object, *route](s.follower, "HTTPRoutes", c.gateway, "httproutes", &object{}, true)
	s.grpcRoutes.watch = inNamespace[*object, *route](s.follower, "GRPCRoutes", c.gateway, "grpcroutes", &object{}, true)
	s.tlsRoutes.watch = inNamespace[*object, *route](s.follower, "TLSRoutes", c.gateway, "tlsroutes", &object{}, true)
	s.tcpRoutes.watch = inNamespace[*object, *route](s.follower, "TCPRoutes", c.gateway, "tcproutes", &object{}, true)
	s.udpRoutes.watch = inNamespace[*object, *route](s.follower, "UDPRoutes", c.gateway, "udproutes", &object{}, true)
	s.grants.watch = func(ctx context.Context, namespace string, store *objectStore[grant], failed func(error)) {
		newer, older := listIn(c.gateway, "referencegrants", namespace, ""), listIn(c.older, "referencegrants", namespace, "")
		follow(ctx, s.follower, subject{kind: "ReferenceGrants", name: namespace, optional: true}, newest(newer, older), &object{}, store, failed)
	}
	s.policies.watch = inNamespace[*object, *policy](s.follower, "BackendTLSPolicies", c.gateway, "backendtlspolicies", &object{}, true)
	s.sets.watch = inNamespace[*object, *listenerSet](s.follower, "ListenerSets", c.gateway, "listenersets", &object{}, true)
	s.attached.watch = inNamespace[*object, *attachedPolicy](s.follower, "GatewayPolicies", c.slipway, "gatewaypolicies", &object{}, true)
	s.services.watch = inNamespace[*corev1.Service, service](s.follower, "Services", c.core, "services", &corev1.Service{}, false)
	s.slices.watch = inNamespace[*discoveryv1.EndpointSlice, slice](s.follower, "EndpointSlices", c.discovery, "endpointslices", &discoveryv1.EndpointSlice{}, false)
	s.namespaces.watch = func(ctx context.Context, name string, store *store[*corev1.Namespace, map[string]string], failed func(error)) {
		follow(ctx, s.follower, subject{kind: "Namespaces", name: name}, listIn(c.core, "namespaces", "", name), &corev1.Namespace{}, store, failed)
	}
	s.secrets.watch = func(ctx context.Context, name string, store *secretStore, failed func(error)) {
		follow(ctx, s.follower, subject{kind: "Secrets", name: name}, c.list(c.core, "secrets", name), &corev1.Secret{}, store, failed)
	}
	s.following.Go(func() { s.contacts.run(ctx, s.wake) })
	s.following.Go(func() { s.wakeFor(ctx, s.options.MissingKeysChanged) })
	s.following.Go(func() { s.wakeFor(ctx, s.options.SharedChanged) })
	s.loop(ctx, s.safeLook)
	s.following.Wait()
	return nil
}

// inNamespace returns the watch of a group whose keys are namespaces. An empty one means all.
func inNamespace[O metav1.Object, T any](
	f *follower, what string, client cache.Getter, resource string, kind any, optional bool,
) func(context.Context, string, *store[O, T], func(error)) {
	return func(ctx context.Context, namespace string, store *store[O, T], failed func(error)) {
		follow(ctx, f, subject{kind: what, name: namespace, optional: optional}, listIn(client, resource, namespace, ""), kind, store, failed)
	}
}
