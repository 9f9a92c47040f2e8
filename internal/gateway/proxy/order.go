package proxy

import (
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// everywhere returns the steps that hold on every route, asked for or not, and where there is no route.
func everywhere() steps {
	return steps{
		receive: []func(*exchange, *upstream.Response) *upstream.Response{(*exchange).forgetAnswered},
		failed:  []func(*exchange, error){(*exchange).forgetFailed},
		tell:    []func(*exchange, http.Header){(*exchange).tellCookies},
		hint:    []func(*exchange, http.Header){(*exchange).dropForged},
	}
}

// bindSteps makes the steps of all routes. All else that belongs to the state is there.
func (h *Handler) bindSteps(s *state) {
	s.steps = make([]*steps, len(s.Table.Routes))
	for _, route := range s.Table.Routes {
		s.steps[route.Place] = &h.everywhere
		if bound := h.stepsOf(s, route); bound.count() > h.everywhere.count() {
			own := bound // the others need no memory
			s.steps[route.Place] = &own
		}
	}
}

// stepsOf returns the steps of a route. This is the order of features, in each list of steps, from top to bottom.
func (h *Handler) stepsOf(s *state, r *table.Route) steps {
	bound := h.everywhere
	if r.ClientAddresses != nil { // before cors: who is not let in gets no answer to a preflight either
		bound.admit = append(bound.admit, address{r.ClientAddresses}.admit)
	}
	if r.CORS != nil { // before limits and auth: a preflight has no credentials, and a page must be able to read a refusal
		shared := cors{r.CORS}
		bound.admit, bound.filter = append(bound.admit, shared.admit), append(bound.filter, shared.filter)
	}
	if r.Maintenance != nil { // after cors: a page must be able to read it; before limits and auth: what they ask may be down as well
		bound.admit = append(bound.admit, maintenance{r.Maintenance}.admit)
	}
	limit := rateLimit{r.RateLimit, r.Name}
	if r.RateLimit != nil && r.RateLimit.Per != ratelimit.PerKey { // before auth: it bounds guessing
		bound.admit = append(bound.admit, limit.admit)
	}
	if r.Auth != nil {
		bound.admit = append(bound.admit, auth{r.Auth}.admit)
	}
	if r.RateLimit != nil && r.RateLimit.Per == ratelimit.PerKey { // after auth: it counts who was proven
		bound.admit = append(bound.admit, limit.admit)
	}
	if r.MaxBodyBytes > 0 && r.Redirect == nil && r.Direct == nil { // only where a backend gets the body
		bound.admit = append(bound.admit, bodyBound(r.MaxBodyBytes).admit)
	}
	c := cached{r.Cache, fieldsOf}
	if r.Affinity != nil {
		a := s.affinities.routes[r.Place]
		bound.choose, bound.receive, bound.failed = a.choose, append(bound.receive, a.keep), append(bound.failed, a.failed)
		bound.tell = append([]func(*exchange, http.Header){a.tell}, bound.tell...) // what guards sessions comes last
		c.fields = a.withoutPins                                                   // two clients with other pins get the same
	}
	if r.Cache != nil { // after affinity: what is looked for is what is sent
		bound.send, bound.receive = append(bound.send, c.lookUp), append(bound.receive, c.confirm, c.record)
		bound.head, bound.body, bound.end = append(bound.head, c.head), append(bound.body, c.body), append(bound.end, c.end)
	}
	if isMirrored(r) { // after the cache: a hit is not copied
		bound.send = append(bound.send, mirror{r.Mirrors}.send)
	}
	if r.Cache != nil { // after the copies: they must not have its conditions
		bound.send = append(bound.send, c.ask)
	}
	if r.Compression != nil { // after the cache: it keeps what the backend sends
		z := compression{r.Compression, h.compressionMetrics.of(r.Name)}
		bound.body, bound.end = append(bound.body, z.body), append(bound.end, z.end)
	}
	return bound
}
