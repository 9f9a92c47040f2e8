package gatewayapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
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
	Made  *table.Auth
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

// CredentialsOf is what a policy in a namespace needs to know whom to let in. Its second result tells whether that is in a
// Secret.
func CredentialsOf(namespace string, auth *slipwayv1alpha1.Auth) (Credentials, bool) {
	in := func(name string, keys ...string) (Credentials, bool) {
		return Credentials{types.NamespacedName{Namespace: namespace, Name: name}, keys}, true
	}
	switch {
	case auth.APIKey != nil:
		return in(auth.APIKey.SecretRef.Name)
	case auth.Basic != nil:
		return in(auth.Basic.SecretRef.Name)
	case auth.JWT != nil && auth.JWT.JWKSSecretRef != nil:
		return in(auth.JWT.JWKSSecretRef.Name, auth.JWT.JWKSSecretRef.Key)
	case auth.OIDC != nil:
		return in(auth.OIDC.ClientSecretRef.Name, apigateway.IssuerKey, auth.OIDC.ClientSecretRef.Key)
	default:
		return Credentials{}, false
	}
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
			one.Made, one.Fault = apigateway.Authentication(policy.Namespace, auth, secrets, nil)
			made[id] = one
		}
	}
	return made
}
