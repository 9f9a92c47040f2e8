package watch

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// portPause is how long a port that could not be opened stays closed before the next attempt.
const portPause = time.Second

// serve makes a table and serves it. again is when to do so again without an event.
func (s *GatewaySource) serve(ctx context.Context, next *state) (again time.Time) {
	now := s.clock.Now()
	pairs, secrets, problems, until := s.keyring.read(next.certificates, now, s.certificate)
	services, authorities := s.backends(next), s.bundlesOf(next)
	in := s.input(next, services, secrets)
	in.Bundles = authorities.known()
	g := s.options.Build(in)
	config := GatewayConfig{Ports: map[Port]bool{}}
	var err error
	if config.Proxy, err = proxy.NewConfig(s.spec()); err != nil {
		return s.refuse(next, err)
	}
	var faults []model.Problem
	var more []document.Problem
	config.Secure, more, again = s.keyring.use(g, pairs, authorities, now)
	again = earliest(until, again)
	compiling := g.Table(services)
	authorities.secureBackends(&compiling, g, s.keyring.shown(g))
	config.Proxy.Table, faults = table.Compile(compiling)
	apart, later := s.share(ctx, next, g) // before a request is counted
	more, again = append(append(more, apart...), s.addSessionKey(next, &config.Proxy)...), earliest(again, later)
	for _, l := range g.Listeners {
		if l.Valid {
			config.Ports[portOf(l)] = true
		}
	}
	s.survival.applying = true
	closed, err := s.options.Apply(config)
	s.survival.applying = false
	if err != nil {
		s.refuse(next, err)
		return again
	}
	if len(closed) > 0 {
		again = earliest(s.clock.Now().Add(portPause), again)
	}
	s.served = next
	if sameVersion(next.version, s.seen) && !s.survival.broken {
		s.rejected = nil
	}
	digests, keyless := s.policyDigests(g)
	s.tell(document.Document{
		UID: next.uid, Generation: next.generation, Rejected: s.rejected, View: s.view,
		Problems:  boundProblems(slices.Concat(problems, more, problemsOfPorts(closed), problemsOfRoutes(next.routes), problemsOfGrants(s), problemsOfPolicies(next.policies), problemsOfAttached(next.attached), keyless, problemsOfSets(next.sets), problemsOfTable(g, faults))),
		Routes:    append(routeDigests(g, next.routes), digests...),
		Listeners: s.servedListeners(g, authorities, closed),
	})
	return again
}

// spec is what concerns all requests, as an APIGateway would say it.
func (s *GatewaySource) spec() *slipwayv1alpha1.APIGatewaySpec {
	return &slipwayv1alpha1.APIGatewaySpec{
		TrustedProxies: s.options.Settings.TrustedProxies,
		AccessLog:      &slipwayv1alpha1.AccessLog{SamplePercent: s.options.Settings.SamplePercent},
	}
}

// refuse tells that a state cannot be served at all.
func (s *GatewaySource) refuse(next *state, err error) time.Time {
	s.rejected = &document.Rejected{Generation: next.generation, Reason: slipwayv1alpha1.ReasonInvalid, Message: err.Error()}
	s.tell(s.document())
	return time.Time{}
}

// input is what the graph is made from.
func (s *GatewaySource) input(next *state, services map[model.ServiceName]model.Service, secrets map[types.NamespacedName]gatewayapi.Secret) gatewayapi.Input {
	in := s.base(next)
	in.Secrets, in.ReservedPorts = secrets, s.options.ReservedPorts
	in.Services, in.Unknown = map[types.NamespacedName]gatewayapi.Service{}, map[types.UID][]string{next.uid: next.unknown}
	for _, l := range next.sets {
		if len(l.unknown) > 0 {
			in.Unknown[l.of.UID] = l.unknown
		}
	}
	for _, r := range next.routes {
		switch {
		case r.http != nil:
			in.HTTPRoutes = append(in.HTTPRoutes, r.http)
		case r.grpc != nil:
			in.GRPCRoutes = append(in.GRPCRoutes, r.grpc)
		case r.tls != nil:
			in.TLSRoutes = append(in.TLSRoutes, r.tls)
		case r.tcp != nil:
			in.TCPRoutes = append(in.TCPRoutes, r.tcp)
		case r.udp != nil:
			in.UDPRoutes = append(in.UDPRoutes, r.udp)
		}
		if len(r.unknown) > 0 {
			in.Unknown[r.uid] = r.unknown
		}
	}
	for _, p := range next.policies {
		in.Policies = append(in.Policies, p.of)
		if len(p.unknown) > 0 {
			in.Unknown[p.of.UID] = p.unknown
		}
	}
	s.addAttached(&in, next)
	for name, from := range services {
		made := gatewayapi.Service{External: from.External, Ports: map[int32]gatewayapi.Port{}, UDP: map[int32]gatewayapi.Port{}}
		for number, port := range from.Ports {
			made.Ports[number] = gatewayapi.Port{Name: port.Name, AppProtocol: port.AppProtocol}
		}
		for number, port := range from.UDP {
			made.UDP[number] = gatewayapi.Port{Name: port.Name}
		}
		in.Services[types.NamespacedName(name)] = made
	}
	return in
}

// labels returns those of namespaces, by the keys of their watches.
func (s *GatewaySource) labels(of map[string]bool) map[string]map[string]string {
	found := map[string]map[string]string{}
	for name := range of { // a namespace that may not be read has its name at least
		found[name] = map[string]string{corev1.LabelMetadataName: name}
	}
	s.namespaces.each(of, func(name types.NamespacedName, labels map[string]string) { found[name.Name] = labels })
	return found
}

// backends returns the Services that a state names.
func (s *GatewaySource) backends(next *state) map[model.ServiceName]model.Service {
	of := map[types.NamespacedName][]slice{}
	s.slices.each(next.scopes, func(_ types.NamespacedName, v slice) {
		if next.services[v.service] {
			of[v.service] = append(of[v.service], v)
		}
	})
	services := map[model.ServiceName]model.Service{}
	s.services.each(next.scopes, func(name types.NamespacedName, v service) {
		if next.services[name] {
			services[model.ServiceName(name)] = resolve(v, of[name])
		}
	})
	return services
}

// servedListeners are the valid listeners whose ports are open.
func (s *GatewaySource) servedListeners(g *gatewayapi.Graph, authorities bundles, closed map[Port]error) []document.ServedListener {
	var list []document.ServedListener
	for _, l := range g.Listeners {
		if _, not := closed[portOf(l)]; not || !l.Valid {
			continue
		}
		parts := append(l.Parts(s.keyring.version, authorities.version), s.options.Settings.Arguments()...)
		list = append(list, document.ServedListener{Name: l.Key(), Digest: document.ListenerDigest(l.Port, l.Secure(), l.Hostname, parts)})
	}
	return list
}

// routeDigests are those of the routes that are attached and served as they are written.
func routeDigests(g *gatewayapi.Graph, routes []*route) []string {
	unknown := map[types.UID]bool{}
	for _, r := range routes {
		unknown[r.uid] = len(r.unknown) > 0
	}
	inTable := map[*gatewayapi.Route]bool{}
	for _, rule := range g.Rules {
		inTable[rule.Route] = true
	}
	var list []string
	for _, r := range g.Routes {
		if inTable[r] && !unknown[r.UID] && slices.ContainsFunc(r.Parents, (*gatewayapi.Parent).Accepted) {
			list = append(list, document.RouteDigest(r.UID, r.Generation))
		}
	}
	return list
}

func problemsOfPorts(closed map[Port]error) []document.Problem {
	var list []document.Problem
	byNumber := func(a, b Port) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Kind, b.Kind)) }
	for _, port := range slices.SortedFunc(maps.Keys(closed), byNumber) {
		list = append(list, document.Problem{
			Route: -1, Name: fmt.Sprint(port.Number), Field: "spec.listeners", Reason: string(gatewayv1.ListenerReasonPortUnavailable),
			Message: fmt.Sprintf("port %d cannot be opened: %v", port.Number, closed[port]),
		})
	}
	return list
}

// problemsOfRoutes are those of routes that could not be parsed.
func problemsOfRoutes(routes []*route) []document.Problem {
	var list []document.Problem
	for _, r := range routes {
		if r.wrong != "" {
			list = append(list, document.Problem{
				Route: -1, Name: r.name.String(), Field: fmt.Sprintf("%s %s", r.kind, r.name),
				Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: r.wrong,
			})
		}
	}
	return list
}

// problemsOfGrants are those of grants that permit nothing.
func problemsOfGrants(s *GatewaySource) []document.Problem {
	var list []document.Problem
	s.grants.each(s.everyone, func(name types.NamespacedName, g grant) {
		if g.wrong != "" {
			list = append(list, document.Problem{
				Route: -1, Name: name.String(), Field: "ReferenceGrant " + name.String(),
				Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: g.wrong,
			})
		}
	})
	slices.SortFunc(list, func(a, b document.Problem) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// problemsOfTable are those of rules. A rule is in the table once for each match and
// hostname, but is told once.
func problemsOfTable(g *gatewayapi.Graph, faults []model.Problem) []document.Problem {
	var list []document.Problem
	seen := map[document.Problem]bool{}
	for _, fault := range faults {
		if fault.Index < 0 {
			continue // of a listener that is not valid, which the operator tells
		}
		rule := &g.Rules[fault.Index]
		problem := document.Problem{
			Route: -1, Name: rule.Route.Name.String(), Field: fmt.Sprintf("%s %s: rules[%d]", rule.Route.Kind, rule.Route.Name, rule.Place),
			Reason: fault.Reason, Message: fault.Message,
		}
		if !seen[problem] {
			seen[problem] = true
			list = append(list, problem)
		}
	}
	return list
}
