package watch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// maxNamespaces is how many namespaces have watches of their own for Services and
// EndpointSlices. If routes name more, all namespaces are watched together: watches have a
// price too.
const maxNamespaces = 50

// state is what the Gateway and its routes ask for at a time, and what must be read for it.
type state struct {
	*gatewayTarget

	routes []*route // sorted
	// services are the Services that the routes and GatewayPolicies name, and the one that leads to the replicas if they count
	// together. scopes are the keys of the watches that have them.
	services map[types.NamespacedName]bool
	scopes   map[string]bool
	// namespaces are the keys of the watches of namespaces.
	namespaces map[string]bool
	secrets    map[string]bool
	// policies are the BackendTLSPolicies for the Services, and bundles the ConfigMaps with
	// authorities that are named.
	policies []*policy
	bundles  map[types.NamespacedName]bool
	// sets are the ListenerSets that name the Gateway, and certificates the Secrets that its
	// listeners and theirs may show.
	sets         []*listenerSet
	certificates []types.NamespacedName
	// attached are the GatewayPolicies that name the Gateway, its sets or its routes.
	attached []*attachedPolicy
}

// advance reads the newest version of the Gateway. An older generation than before comes from
// a stale API server. Another UID is another object.
func (s *GatewaySource) advance() {
	newest, found := s.gateways.get(s.name())
	if !found || (newest.uid == s.seen.uid && newest.generation <= s.seen.generation) {
		return
	}
	s.seen = version{uid: newest.uid, generation: newest.generation}
	t, err := newest.readGateway(s.name())
	if err != nil {
		s.rejected = &document.Rejected{Generation: newest.generation, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: err.Error()}
		return
	}
	s.target, s.rejected = t, nil
}

// next returns the newest state.
func (s *GatewaySource) next() *state {
	next := &state{gatewayTarget: s.target, services: map[types.NamespacedName]bool{}, secrets: map[string]bool{}, namespaces: map[string]bool{}}
	next.sets = s.setsOfGateway()
	granting := map[string]bool{} // namespaces with a grant
	s.grants.each(s.everyone, func(name types.NamespacedName, _ grant) { granting[name.Namespace] = true })
	collect := func(_ types.NamespacedName, r *route) {
		if !s.concerns(r) {
			return
		}
		next.routes = append(next.routes, r)
		for _, name := range r.services {
			// Without a grant it does not matter whether the Service exists.
			if name.Namespace == r.name.Namespace || granting[name.Namespace] {
				next.services[name] = true
			}
		}
	}
	for _, of := range s.routesOfKinds() {
		of.each(s.everyone, collect)
	}
	slices.SortFunc(next.routes, func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.name.Namespace, b.name.Namespace), cmp.Compare(a.name.Name, b.name.Name), cmp.Compare(a.kind, b.kind))
	})
	next.attached = s.attachedTo(next)
	for _, p := range next.attached {
		for _, name := range gatewayapi.ServicesOfGatewayPolicy(p.of) {
			next.services[name] = true
		}
	}
	next.policies = s.policiesFor(next.services)
	if own := s.own(); next.sharesLimits() && own.Name != "" {
		next.services[own] = true // its endpoints are the replicas
	}
	next.scopes = s.scopes(next.services)
	// The labels of namespaces may be read in the whole cluster or not at all.
	if s.everyone[""] && selectsNamespaces(s.target.gateway, next.sets) {
		next.namespaces = s.everyone
	}
	s.addSecrets(next)
	return next
}

// addSecrets notes which Secrets the next state needs: those with certificates and credentials, and that with the copies.
func (s *GatewaySource) addSecrets(next *state) {
	next.bundles = map[types.NamespacedName]bool{}
	for _, name := range gatewayapi.Bundles(s.target.gateway) {
		next.bundles[name] = true
	}
	for _, p := range next.policies {
		for _, name := range gatewayapi.BundlesOfPolicy(p.of) {
			next.bundles[name] = true
		}
	}
	if len(next.bundles) > 0 && s.options.BorrowedCertificates != "" {
		next.secrets[s.options.BorrowedCertificates] = true
	}
	if (next.keepsSessions() || next.sharesLimits()) && s.options.BorrowedCertificates != "" {
		next.secrets[s.options.BorrowedCertificates] = true
	}
	next.certificates = append(gatewayapi.Certificates(s.target.gateway), gatewayapi.CertificatesOfSets(s.base(next))...)
	slices.SortFunc(next.certificates, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	next.certificates = slices.Compact(next.certificates)
	secrets := slices.Clone(next.certificates)
	for _, p := range next.attached {
		secrets = append(secrets, gatewayapi.SecretsOfGatewayPolicy(p.of)...)
	}
	for _, name := range secrets {
		switch {
		case name.Namespace == s.options.Namespace:
			next.secrets[name.Name] = true
		case s.options.BorrowedCertificates != "":
			next.secrets[s.options.BorrowedCertificates] = true
		}
	}
}

// scopes returns the keys of the watches that have these Services.
func (s *GatewaySource) scopes(services map[types.NamespacedName]bool) map[string]bool {
	scopes := map[string]bool{}
	all := s.everyone[""]
	for name := range services {
		if all || s.everyone[name.Namespace] {
			scopes[name.Namespace] = true
		}
	}
	if all && len(scopes) > maxNamespaces {
		return s.everyone
	}
	return scopes
}

// selects reports whether a listener allows routes by the labels of their namespaces.
func selects(l gatewayv1.Listener) bool {
	return l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil && value(l.AllowedRoutes.Namespaces.From) == gatewayv1.NamespacesFromSelector
}

// watchFor watches what two states need: that which is served, and the next one. The served
// one is nil before the first.
func (s *GatewaySource) watchFor(ctx context.Context, next *state) {
	services, scopes := maps.Clone(next.services), maps.Clone(next.scopes)
	namespaces, secrets := maps.Clone(next.namespaces), maps.Clone(next.secrets)
	if s.served != nil {
		maps.Copy(services, s.served.services)
		maps.Copy(scopes, s.served.scopes)
		maps.Copy(namespaces, s.served.namespaces)
		maps.Copy(secrets, s.served.secrets)
	}
	s.relevant.Store(&services) // before the stores are read, so that no later change is missed
	s.services.want(ctx, scopes)
	s.slices.want(ctx, scopes)
	s.namespaces.want(ctx, namespaces)
	s.secrets.want(ctx, secrets)
}

// known reports whether everything that a state needs was read, or will not be. If not, end
// is when the waiting ends. It is zero if that is not known yet.
func (s *GatewaySource) known(next *state) (complete bool, end time.Time) {
	complete = true
	for _, one := range []func() (bool, time.Time){
		func() (bool, time.Time) { return s.services.answered(next.scopes) },
		func() (bool, time.Time) { return s.slices.answered(next.scopes) },
		func() (bool, time.Time) { return s.namespaces.answered(next.namespaces) },
		func() (bool, time.Time) { return s.secrets.answered(next.secrets) },
	} {
		answered, until := one()
		complete = complete && answered
		end = earliest(until, end)
	}
	return complete, end
}

// look serves the current state, if it is complete. again is when to look again without an
// event. It is zero if there is no such time.
func (s *GatewaySource) look(ctx context.Context) (again time.Time) {
	// Read the view before the data, so that the served data is at least as new as the view
	// says.
	s.view = s.contacts.view()
	full := true
	for _, of := range s.routesOfKinds() {
		of.want(ctx, s.everyone)
	}
	s.grants.want(ctx, s.everyone)
	s.policies.want(ctx, s.everyone)
	s.sets.want(ctx, s.everyone)
	s.attached.want(ctx, s.everyone)
	s.advance()
	for _, of := range s.routesOfKinds() {
		full = full && of.full()
	}
	if s.target == nil || !full || !s.grants.full() || !s.policies.full() || !s.sets.full() || !s.attached.full() {
		s.tell(s.document())
		return time.Time{}
	}
	next := s.next()
	s.watchFor(ctx, next)
	complete, end := s.known(next)
	if !complete {
		if s.served == nil {
			s.tell(s.document())
			return end
		}
		next = s.served
	}
	return earliest(end, s.serve(ctx, next))
}

// document is what is said of the state that is served, but for its problems, routes and
// listeners.
func (s *GatewaySource) document() document.Document {
	doc := s.told
	doc.Rejected, doc.View = s.rejected, s.view
	return doc
}
