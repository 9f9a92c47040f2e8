package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	addressserve "github.com/slipway-dev/slipway/internal/gateway/feature/address/serve"
	affinityserve "github.com/slipway-dev/slipway/internal/gateway/feature/affinity/serve"
	bodyboundserve "github.com/slipway-dev/slipway/internal/gateway/feature/bodybound/serve"
	corsserve "github.com/slipway-dev/slipway/internal/gateway/feature/cors/serve"
	maintenanceserve "github.com/slipway-dev/slipway/internal/gateway/feature/maintenance/serve"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// everywhere returns the steps that hold on every route of a table, asked for or not, and where there is no route.
func everywhere(b *bound) exchange.Steps {
	forget, sessions := b.cache.Guard(), b.auth.Guard()
	return exchange.Steps{
		Receive: []func(*exchange.Exchange, *upstream.Response) *upstream.Response{forget.Receive},
		Failed:  []func(*exchange.Exchange, error){forget.Failed},
		Tell:    []func(*exchange.Exchange, http.Header){sessions.Tell},
		Hint:    []func(*exchange.Exchange, http.Header){sessions.Hint},
	}
}

// bindSteps makes the steps of all routes. All else that belongs to the state is there.
func (h *Handler) bindSteps(s *state) {
	s.everywhere = everywhere(&s.bound)
	s.steps = make([]*exchange.Steps, len(s.Table.Routes))
	for _, route := range s.Table.Routes {
		s.steps[route.Place] = &s.everywhere
		if steps := h.features.stepsOf(s, route); steps.Count() > s.everywhere.Count() {
			own := steps // the others need no memory
			s.steps[route.Place] = &own
		}
	}
}

// stepsOf returns the steps of a route. This is the order of features, in each list of steps, from top to bottom.
func (f *features) stepsOf(s *state, r *table.Route) exchange.Steps {
	steps := s.everywhere
	if r.ClientAddresses != nil { // before cors: who is not let in gets no answer to a preflight either
		steps.Admit = append(steps.Admit, addressserve.Step{Addresses: r.ClientAddresses}.Admit)
	}
	if r.CORS != nil { // before limits and auth: a preflight has no credentials, and a page must be able to read a refusal
		shared := corsserve.Step{Policy: r.CORS}
		steps.Admit, steps.Filter = append(steps.Admit, shared.Admit), append(steps.Filter, shared.Filter)
	}
	if r.Maintenance != nil { // after cors: a page must be able to read it; before limits and auth: what they ask may be down as well
		steps.Admit = append(steps.Admit, maintenanceserve.Step{Policy: r.Maintenance}.Admit)
	}
	if r.RateLimit != nil && r.RateLimit.Per != ratelimit.PerKey { // before auth: it bounds guessing
		steps.Admit = append(steps.Admit, f.limit.Of(r.Name, r.RateLimit).Admit)
	}
	if r.Auth != nil {
		steps.Admit = append(steps.Admit, s.bound.authOf(s, r).Admit)
	}
	if r.RateLimit != nil && r.RateLimit.Per == ratelimit.PerKey { // after auth: it counts who was proven
		steps.Admit = append(steps.Admit, f.limit.Of(r.Name, r.RateLimit).Admit)
	}
	if r.MaxBodyBytes > 0 && r.Redirect == nil && r.Direct == nil { // only where a backend gets the body
		steps.Admit = append(steps.Admit, bodyboundserve.Step(r.MaxBodyBytes).Admit)
	}
	var a *affinityserve.Step
	if r.Affinity != nil {
		a = s.bound.affinity.Of(r.Place)
		steps.Choose, steps.Receive, steps.Failed = a.Choose, append(steps.Receive, a.Keep), append(steps.Failed, a.Failed)
		steps.Tell = append([]func(*exchange.Exchange, http.Header){a.Tell}, steps.Tell...) // what guards sessions comes last
	}
	c := s.bound.cache.Of(r.Cache, fieldsOf(a))
	if r.Cache != nil { // after affinity: what is looked for is what is sent
		steps.Send, steps.Receive = append(steps.Send, c.LookUp), append(steps.Receive, c.Confirm, c.Record)
		steps.Head, steps.Body, steps.End = append(steps.Head, c.Head), append(steps.Body, c.Body), append(steps.End, c.End)
	}
	if isMirrored(r) { // after the cache: a hit is not copied
		steps.Send = append(steps.Send, f.mirrorOf(s, r).Send)
	}
	if r.Cache != nil { // after the copies: they must not have its conditions
		steps.Send = append(steps.Send, c.Ask)
	}
	if r.Compression != nil { // after the cache: it keeps what the backend sends
		z := f.compression.Of(r.Name, r.Compression)
		steps.Body, steps.End = append(steps.Body, z.Body), append(steps.End, z.End)
	}
	return steps
}
