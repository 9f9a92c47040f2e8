package jwks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-dev/slipway/internal/dialguard"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/published"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
	"github.com/slipway-dev/slipway/internal/gateway/panics"
)

// Registry keeps one Source per address.
type Registry = published.Registry[token.Keys]

// Source is an address at which an issuer publishes its keys.
type Source = published.Source[token.Keys]

// Options are the callbacks for fetches, and what may be fetched from. All are optional. published.Options says when they
// are called.
type Options struct {
	Failing        func(address string, err error)
	Fetched        func(err error)
	MissingChanged func()
	Panics         panics.Reporter
	Guard          *dialguard.Guard
}

// NewRegistry returns an empty registry.
func NewRegistry(options Options) *Registry {
	return published.NewRegistry(published.Options[token.Keys]{
		Fetch: Fetch, Failing: options.Failing, Fetched: options.Fetched, MissingChanged: options.MissingChanged, Panics: options.Panics, Guard: options.Guard,
	})
}

// Fetch gets a key set, and how long it is fresh. Errors contain nothing of what was read.
func Fetch(ctx context.Context, client *http.Client, address string) (*token.Keys, time.Duration, error) {
	text, fresh, err := published.Get(ctx, client, published.Wanted{
		Address: address, What: "the keys", Accept: "application/jwk-set+json, application/json", MaxBytes: token.MaxKeySet + 1,
	})
	if err != nil {
		return nil, 0, err
	}
	keys, err := token.ParseKeys(text)
	if err != nil {
		return nil, 0, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return keys, fresh, nil
}
