package gatewayapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/affinity"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/backends"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// GatewayPolicy is a GatewayPolicy and what becomes of it for the Gateway.
type GatewayPolicy struct {
	UID        types.UID
	Generation int64
	Name       types.NamespacedName
	// Conditions are those of its status for the Gateway: Accepted.
	Conditions []metav1.Condition
	// Served tells that it can be used as it is written, or that what is not used of it an older policy has. Secrets are those
	// that it names.
	Served  bool
	Secrets []types.NamespacedName
	// Futile tells that nothing of it does anything for what it is for: Accepted says why.
	Futile bool
	// SharesLimit tells that a rule has a rate limit from it that all pods count together, and SharesAffinity that one has
	// sessions from it, so that all pods need a key in common.
	SharesLimit, SharesAffinity bool

	of      *slipwayv1alpha1.GatewayPolicy
	targets []place
	// auth is what its stanzas ask of clients. A fault tells why that is not known.
	auth [stanzas]Authentication
	// asked are the Services that its stanzas have asked about requests.
	asked [stanzas]asked
	// uncounted is why a rate limit for each client cannot be kept: auth, of another policy perhaps, does not say who it is.
	uncounted *fault
	// unreturned is why log-ins cannot end at a rule.
	unreturned *fault
	// unchecked is why the endpoints are not checked: there are too many.
	unchecked *fault
	// invalid is why it cannot be used at all. What it is for then answers 500.
	invalid *fault
	// conflicts are which setting an older policy with the same target has, by that target. overridden are those that overrides of
	// others replace.
	conflicts  map[place]*fault
	overridden [settings]bool
}

// Digest is by what a pod says that it serves the policy. version returns that of a Secret.
func (p *GatewayPolicy) Digest(version func(types.NamespacedName) string) string {
	var secrets []string
	for _, name := range p.Secrets {
		secrets = append(secrets, name.String()+"@"+version(name))
	}
	return document.PolicyDigest(p.UID, p.Generation, secrets)
}

// KeyAddresses are those from which the public keys come by which it lets clients in, and the documents of providers.
func (p *GatewayPolicy) KeyAddresses() []string {
	var addresses []string
	for _, in := range AuthsOf(p.of) {
		if in.JWT != nil && in.JWT.JWKSURL != "" {
			addresses = append(addresses, in.JWT.JWKSURL)
		}
		if in.OIDC != nil {
			addresses = append(addresses, auth.ProviderAddress(in.OIDC.Issuer))
		}
	}
	return addresses
}

// NamesProvider reports whether an address is that of the document of a provider at which its browsers log in.
func (p *GatewayPolicy) NamesProvider(address string) bool {
	return slices.ContainsFunc(AuthsOf(p.of), func(in *slipwayv1alpha1.Auth) bool {
		return in.OIDC != nil && auth.ProviderAddress(in.OIDC.Issuer) == address
	})
}

// stanza is a part of a policy. It says how its settings are inherited.
type stanza int

const (
	defaults stanza = iota
	overrides
	stanzas
)

func (s stanza) String() string { return [stanzas]string{"defaults", "overrides"}[s] }

// setting is a field of a stanza, by its place in the list of settings. Each is inherited by itself.
type setting int

const settings = setting(list.Count)

// These are the settings of which more is known here.
var (
	authSetting      = setting(list.Index(auth.Setting.Name))
	rateLimitSetting = setting(list.Index(ratelimit.Setting.Name))
	backendSetting   = setting(list.Index(backends.Setting.Name))
	affinitySetting  = setting(list.Index(affinity.Setting.Name))
)

func (s setting) entry() *list.Entry { return &list.Entries[s] }

func (s setting) String() string { return s.entry().Name }

// in reports whether a stanza has the setting.
func (s setting) in(of *slipwayv1alpha1.GatewayPolicySettings) bool {
	return of != nil && s.entry().Asked(of)
}

// stanza is one of its parts. Nil: it has not got it.
func (p *GatewayPolicy) stanza(which stanza) *slipwayv1alpha1.GatewayPolicySettings {
	if which == overrides {
		return p.of.Spec.Overrides
	}
	return p.of.Spec.Defaults
}

// layer is what the policies of one target set, the oldest first.
type layer struct {
	// broken is a policy that cannot be used. Nobody knows what it asks for, so nothing it is for is served.
	broken *GatewayPolicy
	holds  [stanzas][settings]*GatewayPolicy
}

// judgeGatewayPolicies finds out what the policies of each target set.
func (b *builder) judgeGatewayPolicies() {
	b.layers = map[place]*layer{}
	for _, of := range ByPrecedence(b.in.GatewayPolicies) {
		p := b.newGatewayPolicy(of)
		b.gatewayPolicies = append(b.gatewayPolicies, p)
		for _, at := range p.targets {
			if b.layers[at] == nil {
				b.layers[at] = &layer{}
			}
			b.layers[at].add(p, at)
		}
	}
}

func (b *builder) newGatewayPolicy(of *slipwayv1alpha1.GatewayPolicy) *GatewayPolicy {
	p := &GatewayPolicy{
		UID: of.UID, Generation: of.Generation, Name: types.NamespacedName{Namespace: of.Namespace, Name: of.Name}, of: of,
		Secrets: SecretsOfGatewayPolicy(of), targets: placesOf(of), conflicts: map[place]*fault{},
	}
	p.invalid = b.refuseGatewayPolicy(p)
	for which := range stanzas {
		if in := p.stanza(which); in != nil && in.Auth != nil {
			if in.Auth.External != nil {
				p.asked[which] = b.judgeAsked(p, which, in.Auth.External)
			}
			p.auth[which] = b.authentication(p, which, in.Auth)
		}
	}
	return p
}

// add adds the settings of a policy, which is younger than those that are there.
func (l *layer) add(p *GatewayPolicy, at place) {
	if p.invalid != nil {
		if l.broken == nil {
			l.broken = p
		}
		return
	}
	for which := range stanzas {
		for one := range settings {
			if !one.in(p.stanza(which)) {
				continue
			}
			first := l.holds[which][one]
			if first == nil {
				l.holds[which][one] = p
			} else if first != p && p.conflicts[at] == nil {
				p.conflicts[at] = &fault{reason: slipwayv1alpha1.ReasonPolicyConflicted, message: fmt.Sprintf(
					"spec.%s.%s: GatewayPolicy %q is older and sets it for %s too, so that one holds; settings that no older policy has are used", which, one, first.Name.Name, at)}
			}
		}
	}
}

func invalidPolicy(format string, args ...any) *fault {
	return faultf(slipwayv1alpha1.ReasonPolicyInvalid, format, args...)
}

// refuseGatewayPolicy is why a policy cannot be used at all.
func (b *builder) refuseGatewayPolicy(p *GatewayPolicy) *fault {
	if unknown := b.in.Unknown[p.UID]; len(unknown) > 0 {
		return invalidPolicy("spec.%s: this version does not know the field", unknown[0])
	}
	if len(p.targets) < len(p.of.Spec.TargetRefs) {
		return invalidPolicy("spec.targetRefs: only Gateways, ListenerSets, HTTPRoutes and GRPCRoutes of group %s can be named", group)
	}
	if p.of.Spec.Defaults == nil && p.of.Spec.Overrides == nil {
		return invalidPolicy("spec: at least one of defaults and overrides must be set")
	}
	for which := range stanzas {
		in := p.stanza(which)
		if in == nil {
			continue
		}
		if f := checkSettings(in); f != nil {
			return invalidPolicy("spec.%s.%s", which, f.Message)
		}
	}
	return nil
}

// checkSettings has the table check the settings of a stanza, but for what auth asks for.
func checkSettings(in *slipwayv1alpha1.GatewayPolicySettings) *model.Fault {
	alone := table.Rule{Direct: &model.DirectResponse{StatusCode: http.StatusOK}}
	others := *in
	others.Auth = nil
	for _, one := range list.ForPolicies {
		if f := one.Read(&alone.Settings, &others, feature.Source{}); f != nil {
			return f
		}
	}
	if in.Auth != nil {
		alone.Auth = &auth.Policy{APIKey: &auth.APIKey{Header: "X-Api-Key"}}
	}
	if countsKeys(in.RateLimit) && anonymous(in.Auth) {
		return &model.Fault{Message: "rateLimit.per: Key needs auth.external.identityHeader"}
	}
	f, _ := table.Check(&alone)
	return f
}

// authentication is what a stanza asks of clients, as far as Secrets tell.
func (b *builder) authentication(p *GatewayPolicy, which stanza, in *slipwayv1alpha1.Auth) Authentication {
	id := AuthID(p.Name.Namespace, in)
	found, known := b.in.Authentication[id]
	if !known {
		found.Fault = &model.Fault{Reason: slipwayv1alpha1.ReasonSecretNotFound, Message: "auth: it is not known whom it lets in"}
	}
	if found.Fault != nil {
		return Authentication{Fault: &model.Fault{Reason: found.Fault.Reason, Message: fmt.Sprintf("spec.%s.%s", which, found.Fault.Message)}}
	}
	made := auth.Policy{}
	if found.Made != nil {
		made = *found.Made
	}
	made.ID = id
	if made.External != nil {
		external := *made.External
		external.Ref.Fault = p.asked[which].barred
		made.External = &external
	}
	if in.OIDC != nil {
		made.OIDC = logIn(p.Name.Namespace, in.OIDC, made.OIDC)
	}
	return Authentication{Made: &made}
}

// concludeGatewayPolicies makes the conditions of the policies that name the Gateway, or something of it.
func (b *builder) concludeGatewayPolicies(g *Graph) {
	if len(b.gatewayPolicies) == 0 {
		return
	}
	sections := b.sections(g)
	for _, p := range b.gatewayPolicies {
		matters, missing, conflict := false, (*fault)(nil), (*fault)(nil)
		for _, at := range p.targets {
			names, known := sections[at.Target]
			matters = matters || known
			if known && conflict == nil { // at another Gateway it is told there
				conflict = p.conflicts[at]
			}
			if known && at.section != "" && !slices.Contains(names, at.section) && missing == nil {
				missing = faultf(slipwayv1alpha1.ReasonPolicyTargetNotFound, "spec.targetRefs: there is no %s", at)
			}
		}
		if matters {
			idle, futile := b.enforcement(g, p)
			p.Futile = futile || !b.holds(p, sections)
			p.conclude(cmp.Or(p.asked[defaults].lack, p.asked[overrides].lack, p.uncounted, p.unreturned, idle, missing, conflict, p.unchecked))
			g.GatewayPolicies = append(g.GatewayPolicies, p)
		}
	}
}

// holds reports whether something of a policy holds at one of its targets that there is. An older policy may have all of it.
func (b *builder) holds(p *GatewayPolicy, sections map[Target][]string) bool {
	return slices.ContainsFunc(p.targets, func(at place) bool {
		names, known := sections[at.Target]
		return known && (at.section == "" || slices.Contains(names, at.section)) && b.layers[at].has(p)
	})
}

// has reports whether a setting of a policy is among those that hold. Of one that cannot be used nobody knows.
func (l *layer) has(p *GatewayPolicy) bool {
	return p.invalid != nil || slices.ContainsFunc(l.holds[:], func(of [settings]*GatewayPolicy) bool { return slices.Contains(of[:], p) })
}

// itself is the Gateway as policies name it.
func (b *builder) itself() Target {
	return Target{Kind: "Gateway", Name: types.NamespacedName{Namespace: b.in.Gateway.Namespace, Name: b.in.Gateway.Name}}
}

// sections are the names of the listeners or rules of everything of the Gateway that policies may name.
func (b *builder) sections(g *Graph) map[Target][]string {
	sections := map[Target][]string{}
	gateway := b.itself()
	sections[gateway] = nil
	for _, l := range g.Of(nil) {
		sections[gateway] = append(sections[gateway], string(l.Name))
	}
	for _, set := range g.Sets {
		if set.refused != nil {
			continue
		}
		at := Target{Kind: setKind, Name: set.Name}
		sections[at] = nil
		for _, l := range g.Of(set) {
			sections[at] = append(sections[at], string(l.Name))
		}
	}
	for _, route := range g.Routes {
		at := Target{Kind: string(route.Kind), Name: route.Name}
		sections[at] = nil
		for i := range route.rules {
			if route.rules[i].named {
				sections[at] = append(sections[at], route.rules[i].name)
			}
		}
	}
	return sections
}

// conclude makes the conditions of a policy. lesser is what is wrong with some of its targets.
func (p *GatewayPolicy) conclude(lesser *fault) {
	f := p.invalid
	if f != nil {
		f = &fault{reason: f.reason, message: f.message + "; what the policy is for is answered with 500"}
	}
	for which := range stanzas {
		if wrong := p.auth[which].Fault; wrong != nil && f == nil {
			f = invalidPolicy("%s; what it would protect is answered with 500", wrong.Message)
		}
	}
	p.Served = f == nil
	f = cmp.Or(f, lesser)
	message := "the policy is used"
	var replaced []string
	for one := range settings {
		if p.overridden[one] {
			replaced = append(replaced, one.String())
		}
	}
	if len(replaced) > 0 {
		message = fmt.Sprintf("the policy is used, but for what overrides of other policies replace: %s", strings.Join(replaced, ", "))
	}
	c := conditions{p.Generation}
	p.Conditions = []metav1.Condition{c.condition(slipwayv1alpha1.ConditionPolicyAccepted, slipwayv1alpha1.ReasonPolicyAccepted, message, f)}
}
