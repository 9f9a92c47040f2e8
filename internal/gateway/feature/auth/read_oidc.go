package auth

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const (
	defaultRedirectPath  = "/oauth2/callback"
	defaultSessionLength = 12 * time.Hour

	// IssuerKey is the key of a Secret with a client secret that names the issuer for which it is.
	IssuerKey = "issuer"
)

// readOIDC checks what the spec says first. So it is told also by who does not know the Secret.
func (s *source) readOIDC(in *slipwayv1alpha1.OIDCAuth) (*OIDC, *model.Fault) {
	auth, f := LogIn(in, s.Checks)
	if f == nil {
		auth.Secrets, f = s.clientSecrets(in)
	}
	return auth, f
}

// LogIn is how browsers log in, without the client secret.
func LogIn(in *slipwayv1alpha1.OIDCAuth, checks feature.Checks) (*OIDC, *model.Fault) {
	length, f := feature.Duration("auth.oidc.sessionLength", slipwayv1alpha1.Duration(in.SessionLength), defaultSessionLength)
	if f != nil {
		return nil, f
	}
	shared := *in
	shared.ClaimsToHeaders = nil // what a backend is told is no matter of the session
	auth := OIDC{
		Scope: feature.Describe(shared), Issuer: in.Issuer, ClientID: in.ClientID, Scopes: feature.Words(in.Scopes), Length: length,
		RedirectPath: cmp.Or(string(in.RedirectPath), defaultRedirectPath), LogoutPath: string(in.LogoutPath),
		AfterLogout: string(in.AfterLogout),
	}
	for _, claim := range in.ClaimsToHeaders {
		auth.ClaimHeaders = append(auth.ClaimHeaders, ClaimHeader{Claim: claim.Claim, Header: string(claim.Header)})
	}
	switch in.ForwardToken {
	case "", slipwayv1alpha1.ForwardNoToken:
	case slipwayv1alpha1.ForwardAccessToken:
		auth.Forward = ForwardAccessToken
	case slipwayv1alpha1.ForwardIDToken:
		auth.Forward = ForwardIDToken
	default:
		return nil, model.Invalid("auth.oidc.forwardToken: %q is not one of None, AccessToken and IDToken", in.ForwardToken)
	}
	_, f = CheckOIDC(auth, checks)
	return &auth, f
}

// clientSecrets reads a client secret. The Secret must name the issuer that gets it: who writes a route but may read no Secrets
// could otherwise have any of them sent to an address of his own.
func (s *source) clientSecrets(in *slipwayv1alpha1.OIDCAuth) ([]Secret, *model.Fault) {
	const field = "auth.oidc.clientSecretRef"
	ref := in.ClientSecretRef
	raw, data, f := s.key(field, ref.Name, ref.Key)
	if f != nil {
		return nil, f
	}
	if ref.Key == IssuerKey || strings.TrimSpace(string(data[IssuerKey])) != in.Issuer {
		return nil, invalidSecret(field, ref.Name, ref.Key, fmt.Sprintf(
			"the Secret must say in its key %q for which issuer it is, and that must be auth.oidc.issuer", IssuerKey))
	}
	var lines []string
	for line := range strings.SplitSeq(string(raw), "\n") {
		if line = strings.TrimSpace(line); line != "" { // a secret may hold blanks
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 || len(lines) > maxCredentials {
		return nil, invalidSecret(field, ref.Name, ref.Key, "it must have one or two lines")
	}
	var secrets []Secret
	for _, line := range lines {
		if len(line) < MinClientSecret {
			return nil, invalidSecret(field, ref.Name, ref.Key, fmt.Sprintf(
				"every line must be a client secret of at least %d characters", MinClientSecret))
		}
		secrets = append(secrets, Secret(line))
	}
	return secrets, nil
}
