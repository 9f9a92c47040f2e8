package watch

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/gateway/revision"
	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
)

// policy is a BackendTLSPolicy.
type policy struct {
	of *gatewayv1.BackendTLSPolicy
	// unknown are fields that this program does not know. What the policy is for is then not
	// reached.
	unknown []string
	// wrong says why it could not be parsed.
	wrong string
}

// services are those that it is for.
func (p *policy) services() []types.NamespacedName {
	if p == nil {
		return nil
	}
	return graph.ServicesOfPolicy(p.of)
}

// keepPolicy parses a policy. Of one that cannot be parsed the targets are read, if possible:
// they must not be reached without TLS.
func keepPolicy(in *object) *policy {
	p := &policy{of: &gatewayv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, UID: in.UID, Generation: in.Generation, CreationTimestamp: in.CreationTimestamp,
	}}}
	var err error
	if p.unknown, err = readStrictly(in.Spec.Raw, &p.of.Spec); err == nil {
		return p
	}
	p.wrong, p.unknown = err.Error(), []string{"(of another form)"}
	var targets struct {
		TargetRefs []gatewayv1.LocalPolicyTargetReferenceWithSectionName `json:"targetRefs"`
	}
	p.of.Spec = gatewayv1.BackendTLSPolicySpec{}
	if json.UnmarshalCaseSensitivePreserveInts(in.Spec.Raw, &targets) == nil {
		p.of.Spec.TargetRefs = targets.TargetRefs
	}
	return p
}

func samePolicy(a, b *policy) bool {
	return a.of.UID == b.of.UID && a.of.Generation == b.of.Generation
}

// policiesFor returns the policies for some Services, in a stable order.
func (s *GatewaySource) policiesFor(services map[types.NamespacedName]bool) []*policy {
	var found []*policy
	s.policies.each(s.everyone, func(_ types.NamespacedName, p *policy) {
		if slices.ContainsFunc(p.services(), func(name types.NamespacedName) bool { return services[name] }) {
			found = append(found, p)
		}
	})
	slices.SortFunc(found, func(a, b *policy) int {
		return cmp.Or(cmp.Compare(a.of.Namespace, b.of.Namespace), cmp.Compare(a.of.Name, b.of.Name))
	})
	return found
}

// problemsOfPolicies are those of policies that could not be parsed.
func problemsOfPolicies(policies []*policy) []revision.Problem {
	var list []revision.Problem
	for _, p := range policies {
		if p.wrong != "" {
			name := types.NamespacedName{Namespace: p.of.Namespace, Name: p.of.Name}.String()
			list = append(list, revision.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("BackendTLSPolicy %s", name), Reason: string(gatewayv1.PolicyReasonInvalid), Message: p.wrong,
			})
		}
	}
	return list
}
