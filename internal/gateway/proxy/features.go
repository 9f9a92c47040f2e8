package proxy

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	affinityserve "github.com/slipway-dev/slipway/internal/gateway/feature/affinity/serve"
	authserve "github.com/slipway-dev/slipway/internal/gateway/feature/auth/serve"
	cacheserve "github.com/slipway-dev/slipway/internal/gateway/feature/cache/serve"
	compressionserve "github.com/slipway-dev/slipway/internal/gateway/feature/compression/serve"
	mirrorserve "github.com/slipway-dev/slipway/internal/gateway/feature/mirror/serve"
	ratelimitserve "github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/serve"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// features are what features have in common for all tables.
type features struct {
	limit       *ratelimitserve.Engine
	auth        *authserve.Engine
	cache       *cacheserve.Engine
	mirror      *mirrorserve.Engine
	compression *compressionserve.Engine
	ownKey      []byte // of affinity, instead of a Config.SessionKey
}

func newFeatures(options *Options) features {
	return features{
		limit: ratelimitserve.New(options.Clock, options.Shared),
		auth: authserve.New(&authserve.Options{
			Clock: options.Clock, Identity: options.Identity, Metrics: options.Metrics, Guard: options.Guard, Panics: options.Panics,
			KeysFailing: options.KeysFailing, ProviderFailing: options.ProviderFailing, KeysMissingChanged: options.KeysMissingChanged,
		}),
		cache:       cacheserve.New(options.Memory, options.Clock, options.Metrics),
		mirror:      mirrorserve.New(),
		compression: compressionserve.New(options.Metrics),
		ownKey:      affinityserve.NewKey(),
	}
}

// bound is what features have for one table.
type bound struct {
	auth     *authserve.Table
	cache    cacheserve.Table
	affinity *affinityserve.Table
}

// bind prepares the features for a table.
func (f *features) bind(s *state) bound {
	b := bound{auth: f.auth.Table(), cache: f.cache.Table(nil)}
	for _, route := range s.Table.Routes {
		if route.Auth != nil {
			b.auth.Add(route.Name, route.Auth)
		}
		if route.Cache != nil && len(route.Backends) > 0 && !b.cache.InUse() {
			b.cache = f.cache.Table(s.Table.Backends)
		}
	}
	b.affinity = f.bindAffinity(s)
	return b
}

// bindAffinity gives the routes with affinity what they need, and their backends the key. Others need no names for their
// endpoints.
func (f *features) bindAffinity(s *state) *affinityserve.Table {
	key := s.SessionKey
	if len(key) == 0 {
		key = f.ownKey
	}
	sticky := make([]bool, len(s.services))
	var routes []affinityserve.Route
	for _, route := range s.Table.Routes {
		if route.Affinity == nil {
			continue
		}
		of := affinityserve.Route{Policy: route.Affinity, Place: route.Place}
		for i := range route.Backends {
			backend := &route.Backends[i]
			sticky[backend.Index] = true
			service := s.services[backend.Index]
			of.Backends = append(of.Backends, affinityserve.Backend{ID: backend.ID, Weight: backend.Weight, Service: service})
		}
		routes = append(routes, of)
	}
	for i, service := range s.services {
		if sticky[i] {
			service.SetKey(key, s.Table.Backends[i].ID)
		} else {
			service.SetKey(nil, "")
		}
	}
	return affinityserve.New(key, routes)
}

// keep drops what features have of earlier tables.
func (b *bound) keep(s *state) {
	var cached []int
	names := map[string]bool{}
	for _, route := range s.Table.Routes {
		if route.Cache == nil {
			continue
		}
		names[route.Name] = true
		for i := range route.Backends {
			cached = append(cached, route.Backends[i].Index)
		}
	}
	b.cache.Keep(cached, names)
	b.auth.Keep()
}

// authOf returns the step of auth of a route.
func (b *bound) authOf(s *state, r *table.Route) *authserve.Step {
	if r.Auth.External == nil || r.Auth.External.Backend == nil {
		return b.auth.Of(r.Auth, r.MaxBodyBytes, nil, 0)
	}
	asked := r.Auth.External.Backend
	return b.auth.Of(r.Auth, r.MaxBodyBytes, s.services[asked.Index], protocolOf(asked))
}

// isMirrored reports whether requests of a route are copied.
func isMirrored(r *table.Route) bool {
	return len(r.Mirrors) > 0 || slices.ContainsFunc(r.Backends, func(b table.WeightedBackend) bool { return len(b.Mirrors) > 0 })
}

// mirrorOf returns the step of copies of a route.
func (f *features) mirrorOf(s *state, r *table.Route) mirrorserve.Step {
	step := mirrorserve.Step{Engine: f.mirror, Copies: copiesOf(s, r.Mirrors), OfBackend: make([][]mirrorserve.Copy, len(r.Backends))}
	for i := range r.Backends {
		step.OfBackend[i] = copiesOf(s, r.Backends[i].Mirrors)
	}
	return step
}

func copiesOf(s *state, mirrors []table.Mirror) []mirrorserve.Copy {
	var copies []mirrorserve.Copy
	for i := range mirrors {
		copies = append(copies, mirrorserve.Copy{
			Service: s.services[mirrors[i].Backend.Index], Protocol: protocolOf(mirrors[i].Backend),
			Numerator: mirrors[i].Numerator, Denominator: mirrors[i].Denominator,
		})
	}
	return copies
}

// fieldsOf returns what says which response a request gets.
func fieldsOf(a *affinityserve.Step) func(e *exchange.Exchange) []upstream.Field {
	if a == nil {
		return cacheserve.Fields
	}
	return a.WithoutPins // two clients with other pins get the same
}
