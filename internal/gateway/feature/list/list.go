// Package list has the settings of a rule, each in one place. A new feature is one line in Settings, in Compiled and in All.
//
//	list.go   Settings, Compiled and All
//	entry.go  Entry: a setting without its types
//	order.go  the orders in which settings are read and compiled
package list

import (
	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/backends"
	"github.com/slipway-dev/slipway/internal/gateway/feature/bodybound"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cache"
	"github.com/slipway-dev/slipway/internal/gateway/feature/compression"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/maintenance"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Settings are what is asked for. It is plain data. A zero field means that nothing is asked for.
type Settings struct {
	// ClientAddresses says which clients are let in. Nil: all.
	ClientAddresses *address.Rule
	// Auth says who clients must be. Nil: anybody.
	Auth *auth.Policy
	// RateLimit bounds the rate of requests. Nil: nothing does.
	RateLimit *ratelimit.Limit
	// CORS says what pages of other origins may do. Nil: nothing.
	CORS *cors.Rule
	// MaxBodyBytes bounds the size of a request body. 0 means no limit.
	MaxBodyBytes int64
	// BackendSettings are those of the backends for this rule and others of the same group. Nil: those that hold for all rules.
	BackendSettings *model.BackendSettings
	// Affinity sends the requests of a client to the same endpoint. Nil: the load decides.
	Affinity *affinity.Policy
	// Compression says which responses are compressed. Nil: none.
	Compression *compress.Policy
	// Cache says which responses are kept. Nil: none.
	Cache *cache.Rule
	// Maintenance says when requests are answered with 503. Nil: never.
	Maintenance *maintenance.Rule
}

// Compiled are the settings as they are served. The fields are those of Settings.
type Compiled struct {
	ClientAddresses *address.Addresses
	Auth            *auth.Policy
	RateLimit       *ratelimit.Limit
	CORS            *cors.Policy
	MaxBodyBytes    int64
	BackendSettings *model.BackendSettings
	Affinity        *affinity.Policy
	Compression     *compress.Policy
	Cache           *cache.Policy
	Maintenance     *maintenance.Policy
}

// Count is how many settings there are.
const Count = len(All{})

// All is the type of the list of settings.
type All [10]Entry

// Entries are all settings, in the order in which users see them.
var Entries = All{
	at(&address.Setting, func(s *Settings) **address.Rule { return &s.ClientAddresses },
		func(c *Compiled) **address.Addresses { return &c.ClientAddresses }),
	at(&auth.Setting, func(s *Settings) **auth.Policy { return &s.Auth }, func(c *Compiled) **auth.Policy { return &c.Auth }),
	at(&ratelimit.Setting, func(s *Settings) **ratelimit.Limit { return &s.RateLimit },
		func(c *Compiled) **ratelimit.Limit { return &c.RateLimit }),
	at(&cors.Setting, func(s *Settings) **cors.Rule { return &s.CORS }, func(c *Compiled) **cors.Policy { return &c.CORS }),
	at(&bodybound.Setting, func(s *Settings) *int64 { return &s.MaxBodyBytes }, func(c *Compiled) *int64 { return &c.MaxBodyBytes }),
	at(&backends.Setting, func(s *Settings) **model.BackendSettings { return &s.BackendSettings },
		func(c *Compiled) **model.BackendSettings { return &c.BackendSettings }),
	at(&affinity.Setting, func(s *Settings) **affinity.Policy { return &s.Affinity },
		func(c *Compiled) **affinity.Policy { return &c.Affinity }),
	at(&compression.Setting, func(s *Settings) **compress.Policy { return &s.Compression },
		func(c *Compiled) **compress.Policy { return &c.Compression }),
	at(&cache.Setting, func(s *Settings) **cache.Rule { return &s.Cache }, func(c *Compiled) **cache.Policy { return &c.Cache }),
	at(&maintenance.Setting, func(s *Settings) **maintenance.Rule { return &s.Maintenance },
		func(c *Compiled) **maintenance.Policy { return &c.Maintenance }),
}
