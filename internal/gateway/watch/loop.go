package watch

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// look serves the current state, if it is complete. again is when to look again without an
// event. It is zero if there is no such time.
func (s *Source) look(ctx context.Context) (again time.Time) {
	// Read the view before the data, so that the served data is at least as new as the view
	// says.
	s.view = s.contacts.view()
	s.advance()
	if s.target == nil {
		s.publish(nil)
		return time.Time{}
	}
	// The served target still follows its Services while the next one waits.
	services, wanted, authorities := maps.Clone(s.target.names.Services), maps.Clone(s.target.names.Secrets), maps.Clone(s.target.names.ConfigMaps)
	if s.served != nil {
		maps.Copy(services, s.served.names.Services)
		maps.Copy(wanted, s.served.names.Secrets)
		maps.Copy(authorities, s.served.names.ConfigMaps)
	}
	s.relevant.Store(&services) // before the stores are read, so that no later change is missed
	s.secrets.want(ctx, wanted)
	s.configMaps.want(ctx, authorities)
	if !s.services.full() || !s.slices.full() {
		s.publish(nil)
		return time.Time{}
	}
	next := s.target
	complete, end := s.secrets.answered(next.names.Secrets)
	more, endOfMore := s.configMaps.answered(next.names.ConfigMaps)
	end = earliest(endOfMore, end)
	if !complete || !more {
		if s.served == nil {
			s.publish(nil)
			return end
		}
		next = s.served
	}
	return earliest(end, s.serve(ctx, next))
}

// advance reads the newest version. An older generation than before comes from a stale API
// server. Another UID is another object.
func (s *Source) advance() {
	newest, found := s.gateways.get(s.named(s.options.Name))
	if !found || (newest.uid == s.seen.uid && newest.generation <= s.seen.generation) {
		return
	}
	s.seen = version{uid: newest.uid, generation: newest.generation}
	t, err := newest.read()
	if err != nil {
		s.rejected = &document.Rejected{Generation: newest.generation, Reason: slipwayv1alpha1.ReasonImageIncompatible, Message: err.Error()}
		return
	}
	if t.names.Shares || t.names.Sessions {
		t.names.Secrets[quota.SecretName(s.options.Name)] = true
	}
	if t.names.Shares {
		t.names.Services[s.options.Name] = true
	}
	s.target, s.rejected = t, nil
}

// serve makes a table and serves it. again is when its problems change without an event.
func (s *Source) serve(ctx context.Context, t *target) (again time.Time) {
	in := apigateway.Input{
		Routes: t.routes, Unknown: t.unknownRoutes, HealthChecks: t.healthChecks, UnknownChecks: t.unknownChecks,
		BackendPolicies: t.policies, UnknownPolicies: t.unknownPolicies,
		Streams: t.streams, UnknownStreams: t.unknownStreams, BelievesEverybody: t.believesEverybody, Services: s.backends(t.names.Services),
	}
	in.Secrets, in.Unreadable = s.secrets.contents(t.names.Secrets)
	in.ConfigMaps, in.UnreadableConfigMaps = s.configMaps.contents(t.names.ConfigMaps)
	config := Config{Proxy: t.config}
	var faults []model.Problem
	config.Proxy.Table, faults = s.options.Compile(in)
	problems := document.TableProblems(faults)
	certificates, secure, more, again := s.keyring.read(t, &in, s.options.Clock.Now())
	shown, changes := t.shown(&in, s.options.Clock.Now())
	more, again = append(more, shown...), earliest(changes, again)
	config.Certificates, config.Secure, config.Ports = certificates, secure, streamPorts(&in)
	var asked []document.Problem
	config.Clients, asked = t.clientCheck(&in, &config.Proxy)
	more = append(more, asked...)
	apart, later := s.share(ctx, t, config.Proxy.Table) // before a request is counted
	more, again = append(append(more, apart...), s.addSessionKey(t, &config.Proxy)...), earliest(again, later)
	s.survival.applying = true
	closed, err := s.options.Apply(config)
	s.survival.applying = false
	if err != nil {
		s.rejected = &document.Rejected{Generation: t.generation, Reason: slipwayv1alpha1.ReasonInvalid, Message: err.Error()}
		s.publish(s.told.Problems)
		return again
	}
	if len(closed) > 0 {
		again, more = earliest(s.options.Clock.Now().Add(portPause), again), append(more, t.problemsOfStreamPorts(closed)...)
	}
	s.served = t
	if sameVersion(t.version, s.seen) && !s.survival.broken {
		s.rejected = nil
	}
	problems = append(problems, more...)
	s.publish(boundProblems(append(problems, s.missingKeys(config.Proxy.Table)...)))
	return again
}

// missingKeys lists the routes that refuse all requests because there are no public keys to
// check tokens.
func (s *Source) missingKeys(served *table.Table) []document.Problem {
	if s.options.MissingKeys == nil {
		return nil
	}
	missing := s.options.MissingKeys()
	var problems []document.Problem
	for _, route := range served.Routes {
		if route.Auth != nil && route.Auth.OIDC != nil && missing[auth.ProviderAddress(route.Auth.OIDC.Issuer)] {
			problems = append(problems, document.Problem{
				Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index),
				Reason:  slipwayv1alpha1.ReasonProviderNotFetched,
				Message: fmt.Sprintf("auth.oidc.issuer: what the provider publishes at %s could not be fetched or used yet", auth.ProviderAddress(route.Auth.OIDC.Issuer)),
			})
			continue
		}
		if route.Auth == nil || route.Auth.JWT == nil || !missing[route.Auth.JWT.JWKSURL] {
			continue
		}
		problems = append(problems, document.Problem{
			Route: route.Index, Name: route.Name, Field: fmt.Sprintf("spec.routes[%d]", route.Index),
			Reason:  slipwayv1alpha1.ReasonKeysNotFetched,
			Message: fmt.Sprintf("auth.jwt.jwksURL: no public keys could be fetched from %s yet", route.Auth.JWT.JWKSURL),
		})
	}
	return problems
}

// backends returns the Services that the table needs.
func (s *Source) backends(named map[string]bool) map[string]model.Service {
	of := map[string][]slice{}
	s.slices.each(func(_ types.NamespacedName, v slice) {
		if name := v.service.Name; named[name] {
			of[name] = append(of[name], v)
		}
	})
	services := make(map[string]model.Service, len(named))
	for name := range named {
		if found, ok := s.services.get(s.named(name)); ok {
			services[name] = resolve(found, of[name])
		}
	}
	return services
}

// publish publishes what is served.
func (s *Source) publish(problems []document.Problem) {
	doc := document.Document{Rejected: s.rejected, Problems: problems, View: s.view}
	if s.served != nil {
		doc.UID, doc.Generation, doc.Routes = s.served.uid, s.served.generation, s.served.digests
	}
	s.tell(doc)
}
