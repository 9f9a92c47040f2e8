// Package serve lets clients in that prove who they are, and tells backends who they are.
//
//	auth.go              what auth of all routes has in common
//	table.go             what auth needs of a table
//	step.go              API keys and passwords, and which way a route asks for
//	passwords.go         comparing passwords, which takes time, for one guess after the other
//	token.go             signed tokens
//	oidc.go              log-ins at a provider
//	cookies.go           cookies of log-ins
//	external.go          asking a Service about a request over HTTP
//	external_grpc.go     asking a Service about a request over gRPC
//	metrics.go           how clients prove who they are
//	metrics_external.go  what Services answer
package serve

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/published"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Options configure an Engine.
type Options struct {
	// Clock gives the time.
	Clock clock.PassiveClock
	// Identity is the kind, namespace and name of the gateway. Only a gateway with the same one reads its sessions.
	Identity string
	// Metrics registers the metrics. Nil: no registration.
	Metrics prometheus.Registerer
	// Guard decides from where keys, providers and tokens may be fetched. Nil: it makes no exceptions.
	Guard *dialguard.Guard
	// KeysFailing is called when fetching public keys from an address begins to fail.
	// Optional.
	KeysFailing func(address string, err error)
	// ProviderFailing is called when fetching what the provider of an issuer publishes begins to fail. Optional.
	ProviderFailing func(issuer string, err error)
	// KeysMissingChanged is called when Table.MissingKeys has changed. Optional.
	KeysMissingChanged func()
	// Panics is told of panics that are caught.
	Panics panics.Reporter
}

// Engine is what auth of all routes has in common.
type Engine struct {
	identity  string
	keys      *jwks.Registry
	providers *published.Registry[oidc.Provider]
	traffic   oidc.Traffic
	passwords *passwords
	metrics   *metrics

	// Tokens gets tokens from providers.
	Tokens *http.Client
}

// New returns an engine that must be run.
func New(options *Options) *Engine {
	n := &Engine{identity: options.Identity, passwords: newPasswords(options.Clock), metrics: newMetrics(options.Metrics)}
	n.passwords.panics = options.Panics
	n.keys = jwks.NewRegistry(jwks.Options{
		Failing: options.KeysFailing, Fetched: n.metrics.fetched, MissingChanged: options.KeysMissingChanged,
		Panics: options.Panics, Guard: options.Guard,
	})
	n.providers = published.NewRegistry(published.Options[oidc.Provider]{
		Fetch: oidc.Fetch, Failing: options.ProviderFailing, Fetched: n.metrics.fetched, MissingChanged: options.KeysMissingChanged,
		Panics: options.Panics, Guard: options.Guard,
	})
	n.traffic.Renewed, n.traffic.Panics, n.Tokens = n.metrics.renewed, options.Panics, oidc.NewHTTPClient(options.Guard)
	return n
}

// RunKeys fetches public keys until the context ends.
func (n *Engine) RunKeys(ctx context.Context, clock clock.WithTicker) { n.keys.Run(ctx, clock) }

// RunProviders fetches what providers publish until the context ends.
func (n *Engine) RunProviders(ctx context.Context, clock clock.WithTicker) {
	n.providers.Run(ctx, clock)
}
