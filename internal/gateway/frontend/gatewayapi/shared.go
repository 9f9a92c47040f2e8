package gatewayapi

import (
	"slices"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// SharesLimit tells that a rule has a rate limit that all pods count together, so that they need a secret in common, and each other.
func (g *Graph) SharesLimit() bool {
	return slices.ContainsFunc(g.Rules, func(r Rule) bool { return sharesLimit(r.RateLimit) })
}

// SharesAffinity tells that a rule has the requests of a client sent to the same endpoint, so that the pods need a secret in common.
func (g *Graph) SharesAffinity() bool {
	return slices.ContainsFunc(g.Rules, func(r Rule) bool { return sharesAffinity(r.Affinity) })
}

func sharesLimit(limit *table.RateLimit) bool { return limit != nil && limit.Shared }

func sharesAffinity(affinity *table.Affinity) bool {
	return affinity != nil && affinity.By != table.AffinityNone
}

// noteShared notes the policies for which the pods need each other.
func (h *holding) noteShared(asked *asking) {
	if sharesLimit(h.rateLimit) {
		asked.limits.SharesLimit = true
	}
	if sharesAffinity(h.affinity) {
		asked.sticks.SharesAffinity = true
	}
}

// noteAffinity notes whether a rule asks for sessions itself. What a policy asks for in its place is told there.
func (r *Route) noteAffinity(of *rule, parts []part) {
	r.SharesAffinity = r.SharesAffinity || sharesAffinity(of.action.Affinity) &&
		slices.ContainsFunc(parts, func(p part) bool { return p.holds == nil || p.holds.affinity == nil })
}
