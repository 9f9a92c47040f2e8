package gatewayapi

import (
	"fmt"
	"slices"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// part is a rule under a hostname, for those of its listeners for which the same policies hold.
type part struct {
	hostListeners

	holds *holding
}

// holding is what policies ask of a rule. A fault is that one of them cannot be used, broken, or that it is closed: it asks for what
// nobody can give on connections that are not read.
type holding struct {
	fault  *model.Fault
	broken *GatewayPolicy
	closed bool
	asked  list.Settings
	// from are the policies whose settings these are.
	from [settings]*GatewayPolicy

	// demands is the policy whose override auth is. Nil: it is a default, or there is none.
	demands *GatewayPolicy
	// asks is the policy whose auth it is, and askedIn the stanza. anonymous is the policy too, if that does not say who clients are.
	asks      *GatewayPolicy
	askedIn   stanza
	anonymous *GatewayPolicy
}

// parts divides a rule by what policies ask of it. Listeners may have policies of their own.
func (b *builder) parts(g *Graph, route *Route, of *rule, hosts []hostListeners) []part {
	parts := make([]part, 0, len(hosts))
	if len(b.layers) == 0 {
		for _, host := range hosts {
			parts = append(parts, part{hostListeners: host})
		}
		return parts
	}
	below := b.below(route, of)
	for _, host := range hosts {
		first := len(parts)
		var above [][]*layer // of parts
		for _, i := range host.listeners {
			layers := b.above(g.Listeners[i])
			at := slices.IndexFunc(above, func(other []*layer) bool { return slices.Equal(other, layers) })
			if at < 0 {
				at = len(above)
				above = append(above, layers)
				read := of.action.Transport == model.TransportHTTP
				holds := hold(slices.Concat(layers, below), of, read)
				if holds != nil && holds.asked.BackendSettings != nil && holds.asked.BackendSettings.ChecksOf == b.in.Gateway.Namespace {
					holds.asked.BackendSettings.ChecksOf = "" // the pods are its own
				}
				if !read {
					holds.forConnections()
				}
				parts = append(parts, part{hostListeners{host: host.host, passes: host.passes}, holds})
			}
			parts[first+at].listeners = append(parts[first+at].listeners, i)
		}
	}
	return parts
}

// above are the layers of a listener, the least specific first: of the Gateway, of the ListenerSet, and its own.
func (b *builder) above(l *Listener) []*layer {
	gateway := b.itself()
	if l.Set == nil {
		return b.layersAt(place{gateway, ""}, place{gateway, string(l.Name)})
	}
	set := Target{Kind: setKind, Name: l.Set.Name}
	return b.layersAt(place{gateway, ""}, place{set, ""}, place{set, string(l.Name)})
}

// below are the layers of a route and of one of its rules.
func (b *builder) below(route *Route, of *rule) []*layer {
	at := Target{Kind: string(route.Kind), Name: route.Name}
	if !of.named {
		return b.layersAt(place{at, ""})
	}
	return b.layersAt(place{at, ""}, place{at, of.name})
}

func (b *builder) layersAt(places ...place) []*layer {
	var found []*layer
	for _, at := range places {
		if l := b.layers[at]; l != nil {
			found = append(found, l)
		}
	}
	return found
}

// hold finds out what holds for a rule by its layers, the least specific first. of is the rule, which may say some of
// it itself, and read tells whether the gateway reads requests. It returns nil if the layers ask for nothing.
func hold(layers []*layer, of *rule, read bool) *holding {
	if len(layers) == 0 {
		return nil
	}
	h := &holding{}
	for _, l := range layers {
		if l.broken != nil {
			h.refuse(l.broken, l.broken.invalid.message)
		}
	}
	for one := range settings {
		p, which := inherited(layers, one)
		if p == nil || which == defaults && one.yields(of, read) {
			continue
		}
		if h.from[one] = p; one == authSetting {
			h.authenticate(p, which)
			continue
		}
		h.take(one, p, which, layers)
	}
	if limit := h.asked.RateLimit; h.anonymous != nil && limit != nil && limit.Per == ratelimit.PerKey && read {
		later := moreSpecific(layers, h.from[rateLimitSetting], h.anonymous)
		later.uncounted = invalidPolicy("spec: the rateLimit that holds counts per: Key, and the auth that holds has no external.identityHeader; such requests are answered with 500")
		h.refuse(later, later.uncounted.message)
	}
	if read {
		h.noteShared()
	}
	return h
}

// authenticate takes who has to be who from a policy.
func (h *holding) authenticate(p *GatewayPolicy, which stanza) {
	if f := p.auth[which].Fault; f != nil {
		h.refuse(p, f.Message)
	}
	h.asked.Auth, h.asks, h.askedIn = p.auth[which].Made, p, which
	if anonymous(p.stanza(which).Auth) {
		h.anonymous = p
	}
	if which == overrides {
		h.demands = p
	}
}

// moreSpecific is the one of two policies that are at odds whose owner can know of the other. The first, if both are for the same.
// The owner of a Gateway is not told what a route makes of its policy.
func moreSpecific(layers []*layer, one, other *GatewayPolicy) *GatewayPolicy {
	for _, l := range slices.Backward(layers) {
		for _, p := range []*GatewayPolicy{one, other} {
			for _, of := range l.holds {
				if slices.Contains(of[:], p) {
					return p
				}
			}
		}
	}
	return one
}

// take takes a setting from a policy.
func (h *holding) take(one setting, p *GatewayPolicy, which stanza, layers []*layer) {
	e := one.entry()
	h.read(&h.asked, e, p.stanza(which))
	if e.Inherits == feature.Least {
		h.takeLeast(one, layers)
	}
	if own := h.asked.BackendSettings; one == backendSetting && own != nil {
		own.Group, own.ChecksOf = p.group(which), p.Name.Namespace
	}
}

// takeLeast takes what covers all that is asked for: a setting of the overrides that is stricter holds.
func (h *holding) takeLeast(one setting, layers []*layer) {
	e := one.entry()
	for _, l := range layers {
		if p := l.holds[overrides][one]; p != nil {
			other := list.Settings{}
			h.read(&other, e, p.of.Spec.Overrides)
			if e.Covers(e.Text(&other, feature.Rule{}), e.Text(&h.asked, feature.Rule{})) {
				e.Take(&h.asked, &other)
			}
		}
	}
}

func (h *holding) read(into *list.Settings, e *list.Entry, in *slipwayv1alpha1.GatewayPolicySettings) {
	if f := e.Read(into, in, feature.Source{}); f != nil && h.fault == nil { // cannot happen: each policy was checked
		h.fault = f
	}
}

// yields reports whether a default gives way to what the rule says itself, or is not for connections that are not read.
func (s setting) yields(of *rule, read bool) bool {
	return s.entry().IsSet(&of.action.Settings) || s == authSetting && !read
}

// forConnections leaves what can be asked of connections and datagrams that nobody reads: where they come from. One that overrides
// auth keeps all of them out, because nobody there can prove who they are.
func (h *holding) forConnections() {
	if h == nil {
		return
	}
	if p := h.demands; p != nil && h.fault == nil {
		h.broken, h.closed = p, true
		h.fault = &model.Fault{Reason: ReasonAuthNotPossible, Message: fmt.Sprintf(
			"GatewayPolicy %q asks in spec.overrides.auth who clients are, and the gateway does not read these connections", p.Name)}
	}
	for i := range list.Entries {
		if e := &list.Entries[i]; !e.Connections {
			e.Clear(&h.asked)
		}
	}
}

// refusal is why a rule is not served at a listener.
func (h *holding) refusal(of *rule, at *Listener) *Refusal {
	if h.closed {
		return &Refusal{ReasonAuthNotPossible, fmt.Sprintf(
			"%s is refused at listener %q, because GatewayPolicy %q asks in overrides.auth who clients are, and the gateway does not read these connections",
			of.field, at.Key(), h.broken.Name)}
	}
	becomes := "answered with 500"
	if of.action.Transport != model.TransportHTTP {
		becomes = "refused"
	}
	return &Refusal{ReasonPolicyInvalid, fmt.Sprintf(
		"%s is %s at listener %q, because GatewayPolicy %q cannot be used; its status tells why", of.field, becomes, at.Key(), h.broken.Name)}
}

// group is the name of the rules that a part of the policy sets the backends of. No other policy has it, so nobody can join the
// group, and it stays the same when the settings change, so that connections and health stay.
func (p *GatewayPolicy) group(which stanza) string {
	return fmt.Sprintf("%s/%s/%s", p.Name.Namespace, p.Name.Name, which)
}

// refuse notes the first policy that cannot be used.
func (h *holding) refuse(p *GatewayPolicy, why string) {
	if h.fault == nil {
		h.broken = p
		h.fault = &model.Fault{Reason: slipwayv1alpha1.ReasonPolicyInvalid, Message: fmt.Sprintf("GatewayPolicy %q cannot be used: %s", p.Name, why)}
	}
}

// inherited finds the policy whose setting holds: the least specific that overrides it, or else the most specific default. It
// notes whose setting is overridden.
func inherited(layers []*layer, one setting) (*GatewayPolicy, stanza) {
	if one.entry().Inherits == feature.Withdrawn {
		if p, which := switchedOff(layers, one); p != nil {
			return p, which
		}
	}
	var first *GatewayPolicy
	for _, l := range layers {
		p := l.holds[overrides][one]
		switch {
		case p == nil:
		case first == nil:
			first = p
		case p != first && one.entry().Inherits != feature.Least: // the least holds
			p.overridden[one] = true
		}
	}
	for _, l := range slices.Backward(layers) {
		p := l.holds[defaults][one]
		switch {
		case p == nil:
		case first == nil:
			return p, defaults
		case p != first && one.entry().Inherits != feature.Least:
			p.overridden[one] = true
		case one.entry().Inherits == feature.Least:
			return p, defaults // bounded by the overrides
		}
	}
	return first, overrides
}

// restrict makes a rule ask for what policies ask for. A rule that cannot be served keeps preflight requests: those of
// another rule might be let in.
func (h *holding) restrict(to *table.Rule) {
	if to.Fault == nil {
		to.Fault = h.fault
	}
	for i := range list.Entries {
		if e := &list.Entries[i]; e.IsSet(&h.asked) {
			e.Take(&to.Settings, &h.asked)
		}
	}
	if h.fault != nil && to.CORS == nil && to.Transport == model.TransportHTTP {
		to.CORS = &cors.Rule{}
	}
}
