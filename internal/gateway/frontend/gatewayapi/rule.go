package gatewayapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// rule is a rule of a route of either kind, as far as the route alone tells.
type rule struct {
	// field is where it stands, such as rules[2].
	field string
	// name is that of the spec, or its index.
	name string
	// named tells that the spec has it.
	named bool
	// matches select its requests: those of any of them. There is at least one.
	matches []match
	// action is what happens with its requests, but for what selects them.
	action table.Rule
	// actions are what its filters do.
	actions
	// backends get its requests.
	backends []backend

	// ended are the backends of a TLSRoute as listeners reach them that end TLS.
	ended []model.BackendRef

	// unsupported is the first field that cannot be served as it is written.
	unsupported *fault
	// unresolved is the first reference that cannot be used. Set by judge.
	unresolved *fault
}

// match is what selects requests besides the hostname.
type match struct {
	pathType table.PathType
	path     string
	method   string // empty: every one
	headers  []table.ValueMatch
	query    []table.ValueMatch
	rank     int
	// unknown tells that nobody knows which requests it selects, so none are refused for it: they
	// could be those of all other rules.
	unknown bool
}

// known reports whether it is known which requests the rule is for, or some of them.
func (r *rule) known() bool {
	return slices.ContainsFunc(r.matches, func(m match) bool { return !m.unknown })
}

// refuse notes the first fault.
func (r *rule) refuse(f *fault) {
	if f != nil && r.unsupported == nil {
		r.unsupported = f
	}
}

func unsupportedf(format string, args ...any) *fault {
	return faultf(gatewayv1.RouteReasonUnsupportedValue, format, args...)
}

// newRule makes the frame of a rule.
func newRule(index int, name *gatewayv1.SectionName) rule {
	r := rule{field: fmt.Sprintf("rules[%d]", index), name: strconv.Itoa(index)}
	if name != nil {
		r.name, r.named = string(*name), true
	}
	r.action.StrictShares = true
	r.action.Retries = model.Retries{Attempts: defaultAttempts, On: model.OnConnectFailure}
	return r
}

// check has the table check what it would serve of a rule.
func (r *rule) check(checker *table.Checker) {
	if r.action.Transport != model.TransportHTTP {
		return // there is nothing to be matched but the name of a listener
	}
	for i := range r.matches {
		m := &r.matches[i]
		if m.unknown {
			continue
		}
		made := r.action
		m.fill(&made)
		f, unknown := checker.Check(&made)
		m.unknown = unknown
		if f != nil {
			r.refuse(unsupportedf("%s: %s", r.field, f.Message))
		}
	}
}

// fill says in a rule of the table which requests it is for.
func (m *match) fill(to *table.Rule) {
	to.PathType, to.Path, to.Headers, to.Query, to.Rank = m.pathType, m.path, m.headers, m.query, m.rank
	if m.method != "" {
		to.Methods = []string{m.method}
	}
}

// rules makes what the listeners serve of a route. Each match is a rule of its own for each
// hostname, because the listeners choose by them, and for each listener with policies of its own.
func (b *builder) rules(g *Graph, route *Route) []Rule {
	hosts := hostsOf(g, route)
	var all []Rule
	for i := range route.rules {
		from := &route.rules[i]
		parts := b.parts(g, route, from, hosts)
		route.noteRefusal(g, from, parts)
		route.noteAffinity(from, parts)
		for k, m := range from.matches {
			if m.unknown {
				continue
			}
			for _, p := range parts {
				all = append(all, newTableRule(route, i, m, p.hostListeners))
				made := &all[len(all)-1]
				made.match = k
				if p.holds != nil {
					p.holds.restrict(&made.Rule)
					made.asks, made.askedIn = p.holds.asks, p.holds.askedIn
				}
			}
		}
	}
	return all
}

// noteRefusal notes, for each parent, the first rule that policies keep from being served. Who sees the route need not see the
// policy, so what is wrong with it is told there alone.
func (r *Route) noteRefusal(g *Graph, of *rule, parts []part) {
	for _, p := range parts {
		if p.holds == nil || p.holds.broken == nil {
			continue
		}
		for _, parent := range r.Parents {
			at := slices.IndexFunc(parent.Listeners, func(i int) bool { return slices.Contains(p.listeners, i) })
			if at >= 0 && parent.Refused == nil {
				parent.Refused = p.holds.refusal(of, g.Listeners[parent.Listeners[at]])
			}
		}
	}
}

// Rule is a rule of a listener, and where it comes from.
type Rule struct {
	table.Rule

	// Route is whose rule it is, and Place its index in the spec.
	Route *Route
	Place int

	// match is the index of the match among those of the rule.
	match int
	// asks is the policy that asks who clients are, in a stanza. Nil: there is none.
	asks    *GatewayPolicy
	askedIn stanza
}

// hostListeners are the listeners that serve a route under a hostname.
type hostListeners struct {
	host      string
	passes    bool // TLS goes through
	listeners []int
}

// hostsOf finds under which hostnames a route is served, and by which listeners. Those of the
// listeners come in their order, so that the result is stable.
func hostsOf(g *Graph, route *Route) []hostListeners {
	var hosts []hostListeners
	type key struct {
		host   string
		passes bool
	}
	place := map[key]int{}
	for _, i := range route.attached() {
		l := g.Listeners[i]
		if !l.Valid {
			continue
		}
		for _, host := range served(l.Hostname, route.hostnames) {
			of := key{host, l.Passes()}
			at, known := place[of]
			if !known {
				at = len(hosts)
				place[of] = at
				hosts = append(hosts, hostListeners{host: host, passes: of.passes})
			}
			hosts[at].listeners = append(hosts[at].listeners, i)
		}
	}
	return hosts
}

// attached are the listeners that have the rules of the route, each once and in order.
func (r *Route) attached() []int {
	var all []int
	for _, p := range r.Parents {
		all = append(all, p.Listeners...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func newTableRule(route *Route, place int, m match, host hostListeners) Rule {
	from := &route.rules[place]
	made := from.action
	// An HTTPRoute and a GRPCRoute may have the same name, and rules with the same name are counted together.
	made.Name = fmt.Sprintf("%s/%s/%s/%s", strings.ToLower(string(route.Kind)), route.Name.Namespace, route.Name.Name, from.name)
	made.Listeners = host.listeners
	made.Host = host.host
	m.fill(&made)
	if route.Kind == TLSRoute && !host.passes {
		made.Transport, made.Backends = model.TransportTCP, from.ended
	}
	if f := from.unsupported; f != nil {
		made.Fault = &model.Fault{Reason: f.reason, Message: f.message}
	}
	return Rule{Rule: made, Route: route, Place: place}
}
