package auth

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of auth.
var Setting = feature.Setting[*Policy, *Policy]{
	Name:  "auth",
	Asked: func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Auth != nil },
	Read: func(in *slipwayv1alpha1.GatewayPolicySettings, from feature.Source) (*Policy, *model.Fault) {
		return Read(in.Auth, from)
	},
	Compile: compile,
	Text:    text,
	Covers:  feature.Restricts,
}

// text tells whom a rule lets in: those that others with the same ID do, or those that no other rule does.
func text(asked *Policy, of feature.Rule) string {
	if asked.ID == "" {
		return fmt.Sprintf("rule %d", of.Place)
	}
	return "id " + asked.ID
}

// compile checks and completes a Policy. Read has read the Secrets.
func compile(asked *Policy, of feature.Rule) (*Policy, *model.Fault) {
	auth, f := *asked, (*model.Fault)(nil)
	ways := 0
	for _, is := range []bool{auth.APIKey != nil, auth.Basic != nil, auth.JWT != nil, auth.External != nil, auth.OIDC != nil} {
		if is {
			ways++
		}
	}
	switch {
	case ways != 1:
		f = model.Invalid("auth: exactly one of apiKey, basic, jwt, external and oidc must be set")
	case auth.APIKey != nil:
		auth.APIKey, f = newAPIKey(*auth.APIKey)
	case auth.Basic != nil:
		auth.Basic, f = newBasic(*auth.Basic)
	case auth.JWT != nil:
		auth.JWT, f = newJWT(*auth.JWT)
	case auth.OIDC != nil:
		auth.OIDC, f = newOIDC(*auth.OIDC, of.Checks)
	default:
		auth.External, f = newExternal(*auth.External, of)
	}
	if f != nil {
		return nil, f
	}
	auth.hide()
	return &auth, nil
}
