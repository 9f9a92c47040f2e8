package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Policy is a BackendTLSPolicy and what becomes of it for the Gateway.
type Policy struct {
	UID        types.UID
	Generation int64
	Name       types.NamespacedName
	// Conditions are those of its status for the Gateway: Accepted and ResolvedRefs.
	Conditions []metav1.Condition

	of      *gatewayv1.BackendTLSPolicy
	targets []target
	tls     *BackendTLS // nil where it cannot be used
	// invalid is why it cannot be used at all, unresolved is the first reference that cannot be, and conflict is which
	// other one is used instead for a target.
	invalid, unresolved, conflict *fault
}

// target is what a policy is for: a Service, or one of its ports by name.
type target struct {
	service types.NamespacedName
	port    string // empty: every port
}

// BackendTLS is how a port of a Service is reached with TLS.
type BackendTLS struct {
	// ServerName is sent to the endpoints. Without Names and URIs, their certificate must be for it.
	ServerName string
	// Names and URIs are alternative names, of which the certificate must have one.
	Names []string
	URIs  []string
	// Bundles are the ConfigMaps with the authorities that are trusted. None: those of the system.
	Bundles []types.NamespacedName
}

// newPolicies are the BackendTLSPolicies in their order of precedence: the oldest first, then by namespace and name.
func newPolicies(all []*gatewayv1.BackendTLSPolicy) []*Policy {
	policies := make([]*Policy, 0, len(all))
	for _, of := range all {
		p := &Policy{UID: of.UID, Generation: of.Generation, Name: types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, of: of}
		for _, ref := range of.Spec.TargetRefs {
			if ref.Group == "" && ref.Kind == "Service" {
				p.targets = append(p.targets, target{
					service: types.NamespacedName{Namespace: of.Namespace, Name: string(ref.Name)}, port: string(value(ref.SectionName, "")),
				})
			}
		}
		policies = append(policies, p)
	}
	slices.SortStableFunc(policies, func(a, b *Policy) int {
		return cmp.Or(
			a.of.CreationTimestamp.Compare(b.of.CreationTimestamp.Time),
			cmp.Compare(a.Name.Namespace, b.Name.Namespace),
			cmp.Compare(a.Name.Name, b.Name.Name),
		)
	})
	return policies
}

// judgePolicies resolves the policies, and finds which one each target has.
func (b *builder) judgePolicies() {
	b.policies, b.policyOf = newPolicies(b.in.Policies), map[target]*Policy{}
	for _, p := range b.policies {
		b.resolvePolicy(p)
		for _, t := range p.targets {
			first := b.policyOf[t]
			if first == nil {
				b.policyOf[t] = p
				continue
			}
			if p.conflict == nil && first != p {
				p.conflict = faultf(gatewayv1.PolicyReasonConflicted, "spec.targetRefs: BackendTLSPolicy %q is older and has the same target, so it is used for %s", first.Name.Name, t)
			}
		}
	}
}

// String names the target as users see it.
func (t target) String() string {
	if t.port == "" {
		return fmt.Sprintf("Service %q", t.service.Name)
	}
	return fmt.Sprintf("port %q of Service %q", t.port, t.service.Name)
}

// resolvePolicy finds out how a policy asks for TLS.
func (b *builder) resolvePolicy(p *Policy) {
	in := &p.of.Spec.Validation
	made := &BackendTLS{ServerName: string(in.Hostname)}
	for _, name := range in.SubjectAltNames {
		switch name.Type {
		case gatewayv1.HostnameSubjectAltNameType:
			made.Names = append(made.Names, string(name.Hostname))
		case gatewayv1.URISubjectAltNameType:
			made.URIs = append(made.URIs, string(name.URI))
		default:
			p.invalid = faultf(gatewayv1.PolicyReasonInvalid, "spec.validation.subjectAltNames: the type %q is not supported", name.Type)
		}
	}
	for i, ref := range in.CACertificateRefs {
		name, f := b.authorities(fmt.Sprintf("spec.validation.caCertificateRefs[%d]", i), string(ref.Group), string(ref.Kind), types.NamespacedName{Namespace: p.Name.Namespace, Name: string(ref.Name)})
		switch {
		case f == nil:
			made.Bundles = append(made.Bundles, name)
		case p.unresolved == nil:
			p.unresolved = f
		}
	}
	if f := b.refusePolicy(p, made); f != nil && p.invalid == nil {
		p.invalid = f
	}
	if p.invalid == nil {
		p.tls = made
	}
}

// refusePolicy is why a policy cannot be used at all. What it is for is then not reached, because without TLS, or with
// another one, it must not be.
func (b *builder) refusePolicy(p *Policy, made *BackendTLS) *fault {
	in := &p.of.Spec
	system := in.Validation.WellKnownCACertificates
	switch {
	case len(b.in.Unknown[p.UID]) > 0:
		return unknownf("spec." + b.in.Unknown[p.UID][0])
	case len(in.Options) > 0:
		return faultf(gatewayv1.PolicyReasonInvalid, "spec.options: there is no option that is supported")
	case in.Validation.Hostname == "":
		return faultf(gatewayv1.PolicyReasonInvalid, "spec.validation.hostname: it is missing")
	case len(in.Validation.CACertificateRefs) > 0 && len(made.Bundles) == 0:
		return faultf(gatewayv1.BackendTLSPolicyReasonNoValidCACertificate, "%s", p.unresolved.message)
	case len(in.Validation.CACertificateRefs) > 0:
		return nil
	case system == nil || *system != gatewayv1.WellKnownCACertificatesSystem:
		return faultf(gatewayv1.PolicyReasonInvalid, "spec.validation: caCertificateRefs or wellKnownCACertificates must say whom to trust; the only well-known ones are System")
	}
	return nil
}

// authorities tells why a reference to certificates of authorities cannot be used.
func (b *builder) authorities(field, ofGroup, kind string, name types.NamespacedName) (types.NamespacedName, *fault) {
	if ofGroup != "" || kind != "ConfigMap" {
		return name, faultf(gatewayv1.BackendTLSPolicyReasonInvalidKind, "%s: only ConfigMaps are supported, not %s of group %q", field, kind, ofGroup)
	}
	bundle, exists := b.in.Bundles[name]
	if !exists {
		return name, faultf(gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef, "%s: ConfigMap %q does not exist", field, name.Name)
	}
	if bundle.Problem != "" {
		return name, faultf(gatewayv1.BackendTLSPolicyReasonInvalidCACertificateRef, "%s: ConfigMap %q cannot be used: %s", field, name.Name, bundle.Problem)
	}
	return name, nil
}

// policyFor is the policy of a port of a Service: one that names the port comes before one for all of them.
func (b *builder) policyFor(service types.NamespacedName, port string) *Policy {
	if port != "" {
		if p := b.policyOf[target{service, port}]; p != nil {
			return p
		}
	}
	return b.policyOf[target{service, ""}]
}

// secure notes how a port of a Service is reached with TLS. It tells why the port must not be reached.
func (b *builder) secure(service types.NamespacedName, number int32, transport model.Transport) *fault {
	p := b.policyFor(service, b.in.Services[service].Ports[number].Name)
	if p == nil {
		return nil
	}
	if p.tls == nil {
		return faultf(gatewayv1.RouteReasonUnsupportedProtocol, "port %d of Service %q is not reached, because BackendTLSPolicy %q cannot be used: %s",
			number, service.Name, p.Name.Name, p.invalid.message)
	}
	b.tls[model.BackendName{ServiceName: model.ServiceName(service), Port: number, Transport: transport}] = p.tls
	return nil
}

// concludePolicies makes the conditions of the policies for Services that routes of the Gateway and GatewayPolicies name.
func (b *builder) concludePolicies(g *Graph) {
	named := map[types.NamespacedName]bool{}
	for _, route := range g.Routes {
		for _, name := range route.services {
			named[name] = true
		}
	}
	for _, p := range b.gatewayPolicies {
		for _, name := range ServicesOfGatewayPolicy(p.of) {
			named[name] = true
		}
	}
	for _, p := range b.policies {
		if !slices.ContainsFunc(p.targets, func(t target) bool { return named[t.service] }) {
			continue
		}
		c, accepted := conditions{p.Generation}, p.invalid
		if accepted == nil {
			accepted = p.conflict
		}
		if accepted == nil {
			accepted = b.missing(p, named)
		}
		p.Conditions = []metav1.Condition{
			c.condition(string(gatewayv1.PolicyConditionAccepted), string(gatewayv1.PolicyReasonAccepted), "the policy is used", accepted),
			c.condition(string(gatewayv1.BackendTLSPolicyConditionResolvedRefs), string(gatewayv1.BackendTLSPolicyReasonResolvedRefs), "everything that the policy refers to can be used", p.unresolved),
		}
		g.Policies = append(g.Policies, p)
	}
}

// missing is a target of a policy that does not exist, among those that routes name.
func (b *builder) missing(p *Policy, named map[types.NamespacedName]bool) *fault {
	for _, t := range p.targets {
		if !named[t.service] {
			continue
		}
		service, exists := b.in.Services[t.service]
		if exists && t.port != "" {
			exists = false
			for _, port := range service.Ports {
				exists = exists || port.Name == t.port
			}
			for _, port := range service.UDP {
				exists = exists || port.Name == t.port
			}
		}
		if !exists {
			return faultf(gatewayv1.PolicyReasonTargetNotFound, "spec.targetRefs: %s does not exist", t)
		}
	}
	return nil
}
