package gatewayapi

import (
	"cmp"
	"fmt"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Nothing is accepted that is not enforced. What the gateway does not read it can only judge by the address of the client, and
// gRPC is neither kept nor compressed. A policy that asks for more there says so.

// traffic is what comes by a listener, or to a route.
type traffic struct {
	transport model.Transport
	grpc      bool
}

// String names the traffic as users see it.
func (t traffic) String() string {
	switch {
	case t.grpc:
		return "gRPC"
	case t.transport == model.TransportHTTP:
		return "HTTP"
	default:
		return "connections that the gateway does not read"
	}
}

// idle is the field of a setting that does nothing for the traffic. Empty: all of it holds.
func (s setting) idle(in *slipwayv1alpha1.GatewayPolicySettings, of traffic) string {
	switch e := s.entry(); {
	case !s.in(in) || e.Off(in): // what only takes away what a less specific policy sets leaves nothing to enforce
		return ""
	case of.grpc && e.NotGRPC:
		return e.Name
	case of.transport == model.TransportHTTP:
		return ""
	case !e.Connections:
		return e.Name
	case e.IdleThere != nil:
		return e.IdleThere(in)
	}
	return ""
}

// site is a part of what a policy is for, and what comes by it.
type site struct {
	name    string
	traffic traffic
}

// sites are the parts of a place: its listeners, or the route itself.
func (b *builder) sites(g *Graph, at place) []site {
	switch at.Kind {
	case string(HTTPRoute):
		return []site{{at.String(), traffic{transport: model.TransportHTTP}}}
	case string(GRPCRoute):
		return []site{{at.String(), traffic{transport: model.TransportHTTP, grpc: true}}}
	}
	var sites []site
	for _, l := range g.Listeners {
		of, section := place{Target: b.itself()}, string(l.Name)
		if l.Set != nil {
			of = place{Target: Target{setKind, l.Set.Name}}
		}
		covers := at == place{of.Target, section} || at == of || at == place{Target: b.itself()}
		if !covers {
			continue
		}
		sites = append(sites, site{place{of.Target, section}.String(), traffic{transport: l.transport()}})
	}
	return sites
}

// enforcement finds out what a policy asks for that does nothing. The fault is the first such setting; what else the policy sets is
// used. futile reports whether the whole policy does nothing.
func (b *builder) enforcement(g *Graph, p *GatewayPolicy) (first *fault, futile bool) {
	futile = true
	for which := range stanzas {
		for one := range settings {
			if !one.in(p.stanza(which)) {
				continue
			}
			f, whole := b.unenforced(g, p, which, one)
			first, futile = cmp.Or(first, f), futile && whole
		}
	}
	return first, futile
}

// unenforced is why a setting does nothing where it should hold, and whether nothing of it does anything. One of overrides that
// asks who clients are closes what is not read, so that one is enforced.
func (b *builder) unenforced(g *Graph, p *GatewayPolicy, which stanza, one setting) (first *fault, whole bool) {
	if one == authSetting && which == overrides {
		return nil, false
	}
	whole = true
	for _, at := range p.targets {
		idle := b.idleAt(g, at, one, p.stanza(which))
		whole = whole && idle.whole
		if first == nil && idle.field != "" && (idle.everywhere || one.entry().Protects()) {
			first = faultf(slipwayv1alpha1.ReasonPolicyNotEnforced, "spec.%s.%s does nothing for %s, which is for %s%s; what else the policy sets is used",
				which, idle.field, idle.at.name, idle.at.traffic, advice(at, one, which))
		}
	}
	return first, whole && first != nil
}

// idleness is what of a setting does nothing at the parts of a place.
type idleness struct {
	// field does nothing at a part, the first one such. Empty: all of it holds at all parts.
	field string
	at    site
	// everywhere means that some field of it does nothing at each part, and whole that nothing of it does anything.
	everywhere, whole bool
}

func (b *builder) idleAt(g *Graph, at place, one setting, in *slipwayv1alpha1.GatewayPolicySettings) idleness {
	found := idleness{everywhere: true, whole: true}
	for _, s := range b.sites(g, at) {
		field := one.idle(in, s.traffic)
		found.everywhere = found.everywhere && field != ""
		found.whole = found.whole && field == one.String()
		if found.field == "" && field != "" {
			found.field, found.at = field, s
		}
	}
	return found
}

// advice is what to do about a setting that does not hold for all listeners of a target.
func advice(at place, one setting, which stanza) string {
	var to []string
	if at.section == "" && (at.Kind == "Gateway" || at.Kind == setKind) {
		to = append(to, "name the other listeners by sectionName")
	}
	if one == authSetting && which == defaults {
		to = append(to, "set spec.overrides.auth, which closes it")
	}
	if len(to) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s", strings.Join(to, ", or "))
}
