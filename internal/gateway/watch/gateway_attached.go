package watch

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// attachedPolicy is a GatewayPolicy.
type attachedPolicy struct {
	of *slipwayv1alpha1.GatewayPolicy
	// unknown are fields that this program does not know. What the policy is for is then not
	// served.
	unknown []string
	// wrong says why it could not be parsed.
	wrong string
}

// targets are the objects that it is for.
func (p *attachedPolicy) targets() []gatewayapi.Target {
	if p == nil {
		return nil
	}
	return gatewayapi.TargetsOf(p.of)
}

func keepAttached(in *object) *attachedPolicy {
	p := &attachedPolicy{of: &slipwayv1alpha1.GatewayPolicy{ObjectMeta: metaOfPolicy(in)}}
	p.unknown, p.wrong = readPolicy(in.Spec.Raw, &p.of.Spec, func(targets []slipwayv1alpha1.PolicyTargetReference) {
		p.of.Spec.TargetRefs = targets
	})
	return p
}

func sameAttached(a, b *attachedPolicy) bool {
	return a.of.UID == b.of.UID && a.of.Generation == b.of.Generation
}

func (s *GatewaySource) newAttached() group[*object, *attachedPolicy] {
	return newGroup(s.follower, func() *objectStore[*attachedPolicy] {
		return &objectStore[*attachedPolicy]{
			keep: keepAttached, same: sameAttached, replaced: s.wake,
			changed: func(before, after **attachedPolicy) {
				if s.isRelevant(value(before)) || s.isRelevant(value(after)) {
					s.wake()
				}
			},
		}
	})
}

// isRelevant reports whether a policy names something that is served.
func (s *GatewaySource) isRelevant(p *attachedPolicy) bool {
	relevant := *s.relevantTargets.Load()
	return slices.ContainsFunc(p.targets(), func(t gatewayapi.Target) bool { return relevant[t] })
}

// attachedTo returns the policies that name something of a state, in a stable order. From then
// on changes of such policies matter.
func (s *GatewaySource) attachedTo(next *state) []*attachedPolicy {
	targets := map[gatewayapi.Target]bool{{Kind: "Gateway", Name: s.name()}: true}
	for _, l := range next.sets {
		targets[gatewayapi.Target{Kind: "ListenerSet", Name: l.name()}] = true
	}
	for _, r := range next.routes {
		targets[gatewayapi.Target{Kind: string(r.kind), Name: r.name}] = true
	}
	s.relevantTargets.Store(&targets) // before the policies are read, so that no later change is missed
	var found []*attachedPolicy
	s.attached.each(s.everyone, func(_ types.NamespacedName, p *attachedPolicy) {
		if s.isRelevant(p) {
			found = append(found, p)
		}
	})
	slices.SortFunc(found, func(a, b *attachedPolicy) int {
		return cmp.Or(cmp.Compare(a.of.Namespace, b.of.Namespace), cmp.Compare(a.of.Name, b.of.Name))
	})
	return found
}

// addAttached adds the policies of a state to what the graph is made from.
func (s *GatewaySource) addAttached(in *gatewayapi.Input, next *state) {
	for _, p := range next.attached {
		in.GatewayPolicies = append(in.GatewayPolicies, p.of)
		if len(p.unknown) > 0 {
			in.Unknown[p.of.UID] = p.unknown
		}
	}
	in.Authentication = gatewayapi.Authenticate(in.GatewayPolicies, func(name types.NamespacedName) (map[string][]byte, bool) {
		found, exists := s.credentials(name)
		return found.Data, exists
	})
}

// credentials returns a Secret that a policy names: itself if it is beside the gateway,
// otherwise the operator's copy.
func (s *GatewaySource) credentials(name types.NamespacedName) (copied.Credentials, bool) {
	if name.Namespace == s.options.Namespace {
		in, found := s.secrets.get(name.Name)
		return copied.Credentials{Data: in.data, Version: in.version}, found
	}
	in, _ := s.secrets.get(s.options.BorrowedCertificates)
	return copied.FindCredentials(&corev1.Secret{Data: in.data}, name)
}

// policyDigests are those of the policies that are served as they are written. A policy that lets
// nobody in, because there are no public keys to check tokens, is a problem.
func (s *GatewaySource) policyDigests(g *gatewayapi.Graph) (digests []string, problems []document.Problem) {
	missing := map[string]bool{}
	if s.options.MissingKeys != nil {
		missing = s.options.MissingKeys()
	}
	for _, p := range g.GatewayPolicies {
		if !p.Served {
			continue
		}
		addresses := p.KeyAddresses()
		if at := slices.IndexFunc(addresses, func(address string) bool { return missing[address] }); at >= 0 {
			problem := document.Problem{
				Route: -1, Name: p.Name.String(), Field: fmt.Sprintf("GatewayPolicy %s", p.Name), Reason: slipwayv1alpha1.ReasonKeysNotFetched,
				Message: fmt.Sprintf("auth.jwt.jwksURL: no public keys could be fetched from %s yet", addresses[at]),
			}
			if p.NamesProvider(addresses[at]) {
				problem.Reason = slipwayv1alpha1.ReasonProviderNotFetched
				problem.Message = fmt.Sprintf("auth.oidc.issuer: what the provider publishes at %s could not be fetched or used yet", addresses[at])
			}
			problems = append(problems, problem)
			continue
		}
		digests = append(digests, p.Digest(func(name types.NamespacedName) string {
			found, _ := s.credentials(name)
			return found.Version
		}))
	}
	return digests, problems
}

// problemsOfAttached are those of policies that could not be parsed.
func problemsOfAttached(policies []*attachedPolicy) []document.Problem {
	var list []document.Problem
	for _, p := range policies {
		if p.wrong != "" {
			name := types.NamespacedName{Namespace: p.of.Namespace, Name: p.of.Name}.String()
			list = append(list, document.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("GatewayPolicy %s", name), Reason: slipwayv1alpha1.ReasonPolicyInvalid, Message: p.wrong,
			})
		}
	}
	return list
}
