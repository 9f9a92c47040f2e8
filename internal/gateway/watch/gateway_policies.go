package watch

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
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
	return gatewayapi.ServicesOfPolicy(p.of)
}

func keepPolicy(in *object) *policy {
	p := &policy{of: &gatewayv1.BackendTLSPolicy{ObjectMeta: metaOfPolicy(in)}}
	p.unknown, p.wrong = readPolicy(in.Spec.Raw, &p.of.Spec, func(targets []gatewayv1.LocalPolicyTargetReferenceWithSectionName) {
		p.of.Spec.TargetRefs = targets
	})
	return p
}

// metaOfPolicy is what of the metadata of a policy decides.
func metaOfPolicy(in *object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: in.Namespace, Name: in.Name, UID: in.UID, Generation: in.Generation, CreationTimestamp: in.CreationTimestamp}
}

// readPolicy parses the spec of a policy. Of one that cannot be parsed the targets are read, if possible: they must not be served,
// or reached, without what the policy asks for. unknown and wrong are those of a policy.
func readPolicy[Spec, Target any](raw []byte, spec *Spec, target func([]Target)) (unknown []string, wrong string) {
	unknown, err := readStrictly(raw, spec)
	if err == nil {
		return unknown, ""
	}
	*spec = *new(Spec)
	var targets struct {
		TargetRefs []Target `json:"targetRefs"`
	}
	if json.UnmarshalCaseSensitivePreserveInts(raw, &targets) == nil {
		target(targets.TargetRefs)
	}
	return []string{"(of another form)"}, err.Error()
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
func problemsOfPolicies(policies []*policy) []document.Problem {
	var list []document.Problem
	for _, p := range policies {
		if p.wrong != "" {
			name := types.NamespacedName{Namespace: p.of.Namespace, Name: p.of.Name}.String()
			list = append(list, document.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("BackendTLSPolicy %s", name), Reason: string(gatewayv1.PolicyReasonInvalid), Message: p.wrong,
			})
		}
	}
	return list
}
