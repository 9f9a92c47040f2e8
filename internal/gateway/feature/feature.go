package feature

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is one setting of a rule: S is what is asked for, C is what is served. The zero value of S means that nothing is asked
// for, and that of C that nothing is done.
type Setting[S comparable, C any] struct {
	// Name is that of the field in each API that has it.
	Name string
	// Asked reports whether a policy has the field.
	Asked func(in *slipwayv1alpha1.GatewayPolicySettings) bool
	// Read translates the field. It is called if Asked says so.
	Read func(in *slipwayv1alpha1.GatewayPolicySettings, from Source) (S, *model.Fault)
	// Compile checks what is asked for, and completes it. It is called if something is asked for.
	Compile func(asked S, of Rule) (C, *model.Fault)
	// Text is equal for two that ask for the same. Nil: the JSON of S, so S has nothing that JSON leaves out.
	Text func(asked S, of Rule) string
	// Covers tells what the setting of one rule says of another's. Nil: Same, the strictest.
	Covers Relation
	// Inherits says which policy holds. Default: the least specific override, or else the most specific default.
	Inherits Inheritance
	// Off reports whether a policy has the field only to take away what a less specific one asks for. Nil: never.
	Off func(in *slipwayv1alpha1.GatewayPolicySettings) bool
	// Connections means that it holds for connections and datagrams that are not read, too. IdleThere names the part of it that does
	// nothing there. Nil: all of it holds.
	Connections bool
	IdleThere   func(in *slipwayv1alpha1.GatewayPolicySettings) string
	// NotGRPC means that it does nothing for gRPC.
	NotGRPC bool
	// Backends means that an APIGateway has it for a route with backends only.
	Backends bool
}

// Inheritance says which of the policies that hold for a rule gives it a setting.
type Inheritance uint8

const (
	// ByPrecedence is the least specific override, or else the most specific default.
	ByPrecedence Inheritance = iota
	// Least is the one that covers all others that override it. Covers must be an order then.
	Least
	// Withdrawn is ByPrecedence, but a more specific policy may switch off what an override asks for.
	Withdrawn
)

// Source is what a field of a policy may refer to.
type Source struct {
	// Secrets are the contents of Secrets by name. Unreadable are the names of those that may not be read.
	Secrets    map[string]map[string][]byte
	Unreadable map[string]bool
	// Checks tell which paths may stand in a spec. Nil: what is read was checked before.
	Checks Checks
}

// Secret returns the content of a Secret. The fault names the field, and never the content.
func (s *Source) Secret(field, name string) (map[string][]byte, *model.Fault) {
	data, found := s.Secrets[name]
	if !found {
		return nil, &model.Fault{
			Reason:  slipwayv1alpha1.ReasonSecretNotFound,
			Message: fmt.Sprintf("%s: Secret %q %s", field, name, WhyMissing(s.Unreadable[name])),
		}
	}
	return data, nil
}

// WhyMissing says why an object has no content.
func WhyMissing(unreadable bool) string {
	if unreadable {
		return "may not be read by the gateway"
	}
	return "does not exist"
}

// Checks are what the table knows for all rules together: how servers read paths, and what was compiled before.
type Checks interface {
	// Path refuses what cannot be a path. It may be empty. The fault names the field.
	Path(field, path string) *model.Fault
	// OwnPath refuses what is not read in one way, for a path that the gateway answers itself.
	OwnPath(field, path string) *model.Fault
	// HealthCheck says what is wrong with a check. It is empty for a valid one.
	HealthCheck(check *model.HealthCheck) string
	// Once returns what was made for a key, and makes it if there is nothing yet. A setting may be that of many rules, and whoever
	// writes routes must not make the same work many times.
	Once(key string, make func() any) any
}

// Rule is what a setting may ask of the rule that has it.
type Rule struct {
	// Place is that of the rule among the others.
	Place int
	// Methods are the methods that it matches. Empty: all.
	Methods []string
	// Backends are where its requests go.
	Backends []model.BackendRef
	// Authenticates means that it asks who clients are, and CountsClients that it counts the requests of each.
	Authenticates, CountsClients bool
	// Checks tell which paths may stand in a rule, and keep what rules have in common.
	Checks Checks
}
