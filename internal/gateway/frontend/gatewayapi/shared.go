package gatewayapi

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
)

// SharesLimit reports whether a rule has a rate limit that all pods count together, so that they need a secret in common, and each other.
func (g *Graph) SharesLimit() bool {
	return slices.ContainsFunc(g.Rules, func(r Rule) bool { return sharesLimit(r.RateLimit) })
}

// SharesAffinity reports whether a rule has the requests of a client sent to the same endpoint, so that the pods need a secret in common.
func (g *Graph) SharesAffinity() bool {
	return slices.ContainsFunc(g.Rules, func(r Rule) bool { return sharesAffinity(r.Affinity) })
}

func sharesLimit(limit *ratelimit.Limit) bool { return limit != nil && limit.Shared }

func sharesAffinity(asked *affinity.Policy) bool {
	return asked != nil && asked.By != affinity.None
}

// noteShared notes the policies for which the pods need each other.
func (h *holding) noteShared() {
	if sharesLimit(h.asked.RateLimit) {
		h.from[rateLimitSetting].SharesLimit = true
	}
	if sharesAffinity(h.asked.Affinity) {
		h.from[affinitySetting].SharesAffinity = true
	}
}

// noteAffinity notes whether a rule asks for sessions itself. What a policy asks for in its place is told there.
func (r *Route) noteAffinity(of *rule, parts []part) {
	r.SharesAffinity = r.SharesAffinity || sharesAffinity(of.action.Affinity) &&
		slices.ContainsFunc(parts, func(p part) bool { return p.holds == nil || p.holds.asked.Affinity == nil })
}
