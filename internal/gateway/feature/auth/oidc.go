package auth

import (
	"net/url"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// OIDC lets browsers log in at an OpenID Connect provider.
type OIDC struct {
	// Scope tells which rules share sessions: those with the same one. Empty: the rule shares them with none.
	Scope string

	Issuer   string
	ClientID string
	// Secrets are the client secret, and the one before while both are known. The first one is used.
	Secrets []Secret
	// Scopes are asked for beside openid.
	Scopes []string
	// RedirectPath is where the provider sends browsers back to, and LogoutPath where they log out. Requests for both come to the
	// rule, or to another one with the same Scope. LogoutPath may be empty.
	RedirectPath, LogoutPath string
	// AfterLogout is the page after a log-out. Empty: the provider shows one, or the gateway does.
	AfterLogout string
	// Length is how long a session lasts at the most.
	Length time.Duration
	// ClaimHeaders are the claims that are sent to the backend.
	ClaimHeaders []ClaimHeader
	// Forward is the token that is sent to the backend, in the field Authorization.
	Forward ForwardToken
}

// Secret is a text that is not printed.
type Secret string

// String hides it.
func (Secret) String() string { return "(secret)" }

// GoString hides it.
func (Secret) GoString() string { return "(secret)" }

// ForwardToken says which token the backend gets.
type ForwardToken int

const (
	// ForwardNone sends none. What the client sends stays.
	ForwardNone ForwardToken = iota
	// ForwardAccessToken sends the access token.
	ForwardAccessToken
	// ForwardIDToken sends the ID token.
	ForwardIDToken
)

// MinClientSecret is how many bytes a client secret has at least. Cookies are encrypted with a key that is made from it, so who
// has a cookie could guess a shorter one.
const MinClientSecret = 16

// maxSession is the longest session.
const maxSession = 24 * time.Hour

// ProviderAddress is where a provider publishes its document.
func ProviderAddress(issuer string) string {
	return strings.TrimSuffix(issuer, "/") + "/.well-known/openid-configuration"
}

func isIssuer(issuer string) bool {
	address, err := url.Parse(issuer)
	return err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != "" && address.User == nil &&
		!strings.ContainsAny(issuer, "?#")
}

// newOIDC checks and completes OIDC.
func newOIDC(auth OIDC, checks feature.Checks) (*OIDC, *model.Fault) {
	made, f := CheckOIDC(auth, checks)
	if f == nil && len(auth.Secrets) == 0 {
		return nil, model.Invalid("auth.oidc.clientSecretRef must be set")
	}
	return made, f
}

// CheckOIDC does the same without the client secret.
func CheckOIDC(auth OIDC, checks feature.Checks) (*OIDC, *model.Fault) {
	if !isIssuer(auth.Issuer) {
		return nil, model.Invalid("auth.oidc.issuer: %q is not an http or https address without query and fragment", auth.Issuer)
	}
	if auth.ClientID == "" {
		return nil, model.Invalid("auth.oidc.clientID must be set")
	}
	if auth.Length < time.Minute || auth.Length > maxSession {
		return nil, model.Invalid("auth.oidc.sessionLength: %v is not from 1m to 24h", auth.Length)
	}
	for _, scope := range auth.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c >= 0x7f }) {
			return nil, model.Invalid("auth.oidc.scopes: %q is not a scope", scope)
		}
	}
	for _, one := range []struct{ field, path string }{{"redirectPath", auth.RedirectPath}, {"logoutPath", auth.LogoutPath}} {
		if one.path == "" && one.field == "logoutPath" {
			continue
		}
		if f := checks.OwnPath("auth.oidc."+one.field, one.path); f != nil {
			return nil, f
		}
	}
	if auth.RedirectPath == auth.LogoutPath {
		return nil, model.Invalid("auth.oidc: redirectPath and logoutPath must not be the same")
	}
	if f := checkAfterLogout(&auth, checks); f != nil {
		return nil, f
	}
	var f *model.Fault
	if auth.ClaimHeaders, f = editableClaims("auth.oidc.claimsToHeaders", auth.ClaimHeaders); f != nil {
		return nil, f
	}
	return &auth, nil
}

// checkAfterLogout checks the page after a log-out. It must not be what the gateway answers itself.
func checkAfterLogout(auth *OIDC, checks feature.Checks) *model.Fault {
	const field = "auth.oidc.afterLogout"
	switch auth.AfterLogout {
	case "":
		return nil
	case auth.RedirectPath, auth.LogoutPath:
		return model.Invalid("%s: %q must not be redirectPath or logoutPath", field, auth.AfterLogout)
	}
	if auth.AfterLogout == "/" {
		return nil
	}
	return checks.OwnPath(field, auth.AfterLogout)
}
