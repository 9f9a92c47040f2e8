package gatewayapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Target is an object that a GatewayPolicy is for.
type Target struct {
	Kind string
	Name types.NamespacedName
}

// place is a target or a part of it.
type place struct {
	Target

	section string // empty: all of it
}

// String names the place as users see it.
func (p place) String() string {
	text := fmt.Sprintf("%s %q", p.Kind, p.Name.Name)
	switch {
	case p.section == "":
		return text
	case p.Kind == "Gateway" || p.Kind == setKind:
		return fmt.Sprintf("listener %q of %s", p.section, text)
	default:
		return fmt.Sprintf("rule %q of %s", p.section, text)
	}
}

// placesOf are the places that a policy is for, without those of kinds that are not supported.
func placesOf(policy *slipwayv1alpha1.GatewayPolicy) []place {
	var places []place
	for _, ref := range policy.Spec.TargetRefs {
		if ref.Group != "" && ref.Group != group {
			continue
		}
		switch ref.Kind {
		case "Gateway", setKind, string(HTTPRoute), string(GRPCRoute):
			places = append(places, place{Target{ref.Kind, types.NamespacedName{Namespace: policy.Namespace, Name: ref.Name}}, ref.SectionName})
		}
	}
	return places
}

// TargetsOf are the objects that a policy is for, each once.
func TargetsOf(policy *slipwayv1alpha1.GatewayPolicy) []Target {
	var targets []Target
	for _, at := range placesOf(policy) {
		if !slices.Contains(targets, at.Target) {
			targets = append(targets, at.Target)
		}
	}
	return targets
}

// ByPrecedence are policies in their order of precedence: the oldest first, then by namespace and name.
func ByPrecedence(all []*slipwayv1alpha1.GatewayPolicy) []*slipwayv1alpha1.GatewayPolicy {
	return slices.SortedStableFunc(slices.Values(all), func(a, b *slipwayv1alpha1.GatewayPolicy) int {
		return cmp.Or(
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

// Authentication is what a stanza of a policy asks of clients, or why that is not known. Who does not serve needs no Made.
type Authentication struct {
	Made  *auth.Policy
	Fault *model.Fault
}

// AuthID identifies what a policy in a namespace asks of clients. Equal ones name the same Secrets.
func AuthID(namespace string, auth *slipwayv1alpha1.Auth) string {
	text, err := json.Marshal(auth)
	if err != nil { // cannot happen for API types
		return fmt.Sprintf("%s %+v", namespace, auth)
	}
	return namespace + " " + string(text)
}

// AuthsOf are what the stanzas of a policy ask of clients.
func AuthsOf(policy *slipwayv1alpha1.GatewayPolicy) []*slipwayv1alpha1.Auth {
	var all []*slipwayv1alpha1.Auth
	for _, in := range []*slipwayv1alpha1.GatewayPolicySettings{policy.Spec.Defaults, policy.Spec.Overrides} {
		if in != nil && in.Auth != nil {
			all = append(all, in.Auth)
		}
	}
	return all
}

// Credentials are what a stanza needs of a Secret: some of its keys, or without them all of it.
type Credentials struct {
	Secret types.NamespacedName
	Keys   []string
}

// CredentialsOf is what a policy in a namespace needs to know whom to let in. Its second result reports whether that is in a
// Secret.
func CredentialsOf(namespace string, in *slipwayv1alpha1.Auth) (Credentials, bool) {
	secret, keys, needs := auth.CredentialsOf(in)
	return Credentials{types.NamespacedName{Namespace: namespace, Name: secret}, keys}, needs
}

// SecretsOfGatewayPolicy are the Secrets that a policy names, each once. They are in its namespace.
func SecretsOfGatewayPolicy(policy *slipwayv1alpha1.GatewayPolicy) []types.NamespacedName {
	var names []types.NamespacedName
	for _, auth := range AuthsOf(policy) {
		if of, needs := CredentialsOf(policy.Namespace, auth); needs && !slices.Contains(names, of.Secret) {
			names = append(names, of.Secret)
		}
	}
	return names
}

// authenticationOf is what a policy in a namespace asks of clients, with the contents of Secrets by name. It is checked as the table
// checks it. With a fault, nobody may be let in.
func authenticationOf(namespace string, in *slipwayv1alpha1.Auth, secrets map[string]map[string][]byte) (*auth.Policy, *model.Fault) {
	alone := table.Rule{Direct: &model.DirectResponse{StatusCode: http.StatusOK}}
	var f *model.Fault
	if alone.Auth, f = auth.Read(in, feature.Source{Secrets: secrets, Checks: table.Checks()}); f != nil {
		return nil, f
	}
	if f, _ := table.Check(&alone); f != nil {
		return nil, f
	}
	if external := alone.Auth.External; external != nil {
		external.Ref.Namespace = namespace
	}
	return alone.Auth, nil
}

// Authenticate makes Input.Authentication for some policies. content returns that of a Secret.
func Authenticate(policies []*slipwayv1alpha1.GatewayPolicy, content func(types.NamespacedName) (data map[string][]byte, found bool)) map[string]Authentication {
	made := map[string]Authentication{}
	for _, policy := range policies {
		for _, auth := range AuthsOf(policy) {
			id := AuthID(policy.Namespace, auth)
			if _, known := made[id]; known {
				continue
			}
			secrets := map[string]map[string][]byte{}
			if of, needs := CredentialsOf(policy.Namespace, auth); needs {
				if data, found := content(of.Secret); found {
					secrets[of.Secret.Name] = data
				}
			}
			one := Authentication{}
			one.Made, one.Fault = authenticationOf(policy.Namespace, auth, secrets)
			made[id] = one
		}
	}
	return made
}
