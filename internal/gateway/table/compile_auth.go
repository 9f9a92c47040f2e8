package table

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/token"
	"golang.org/x/crypto/bcrypt"
)

const (
	// maxCredentials is how many keys or passwords of a client are valid at the same time:
	// the current one and its replacement.
	maxCredentials = 2

	defaultKeyHeader = "X-Api-Key"
)

// compileAuth compiles auth. Messages name Secrets, clients and users, but never the stored
// values.
func (c *compiler) compileAuth(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.Auth == nil {
		return nil
	}
	auth, f := &Auth{}, (*fault)(nil)
	in := spec.Auth
	switch {
	case in.APIKey != nil && in.Basic == nil && in.JWT == nil:
		auth.APIKey, f = c.newAPIKey(in.APIKey)
	case in.Basic != nil && in.APIKey == nil && in.JWT == nil:
		auth.Basic, f = c.newBasic(in.Basic)
	case in.JWT != nil && in.APIKey == nil && in.Basic == nil:
		auth.JWT, f = c.newJWT(in.JWT)
	default:
		f = invalid("auth: exactly one of apiKey, basic and jwt must be set")
	}
	if f != nil {
		return f
	}
	auth.hide()
	e.Auth = auth
	return nil
}

// hide collects the header fields that the backend must not get from the client.
func (a *Auth) hide() {
	var names []string
	switch {
	case a.APIKey != nil:
		names = []string{a.APIKey.Header, a.APIKey.ClientHeader}
	case a.Basic != nil:
		names = []string{"Authorization", a.Basic.UserHeader}
	default:
		for _, claim := range a.JWT.ClaimHeaders {
			names = append(names, claim.Header)
		}
	}
	for _, name := range names {
		if name != "" {
			a.Hidden = append(a.Hidden, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-")))
		}
	}
}

func (c *compiler) newAPIKey(in *slipwayv1alpha1.APIKeyAuth) (*APIKey, *fault) {
	auth := &APIKey{QueryParam: in.QueryParam, clients: map[[sha256.Size]byte]string{}}
	var f *fault
	if auth.Header, f = optionalHeader("auth.apiKey.header", in.Header); f != nil {
		return nil, f
	}
	if auth.Header == "" && auth.QueryParam == "" {
		auth.Header = defaultKeyHeader
	}
	if auth.ClientHeader, f = optionalHeader("auth.apiKey.clientHeader", in.ClientHeader); f != nil {
		return nil, f
	}
	secret := in.SecretRef.Name
	f = c.credentials("auth.apiKey.secretRef", secret, func(client, line string) *fault {
		encoded, isHash := strings.CutPrefix(line, "sha256:")
		hash, err := hex.DecodeString(encoded)
		if !isHash || err != nil || len(hash) != sha256.Size {
			return invalidSecret("auth.apiKey.secretRef", secret, client, "every line must be sha256: and the 64 hexadecimal digits of a key's SHA-256")
		}
		if other, taken := auth.clients[[sha256.Size]byte(hash)]; taken && other != client {
			return invalidSecret("auth.apiKey.secretRef", secret, client, fmt.Sprintf("it has the same API key as %q", other))
		}
		auth.clients[[sha256.Size]byte(hash)] = client
		return nil
	})
	return auth, f
}

func (c *compiler) newBasic(in *slipwayv1alpha1.BasicAuth) (*Basic, *fault) {
	auth := &Basic{Realm: in.Realm, Users: map[string][][]byte{}}
	if !isHeaderValue(auth.Realm) || strings.ContainsAny(auth.Realm, `"\`) {
		return nil, invalid("auth.basic.realm holds a character that it must not hold")
	}
	var f *fault
	if auth.UserHeader, f = optionalHeader("auth.basic.userHeader", in.UserHeader); f != nil {
		return nil, f
	}
	secret := in.SecretRef.Name
	f = c.credentials("auth.basic.secretRef", secret, func(user, line string) *fault {
		if !isBcrypt(line) {
			return invalidSecret("auth.basic.secretRef", secret, user,
				fmt.Sprintf("every line must be a bcrypt hash, which begins with $2y$, $2b$ or $2a$, of a cost from %d to %d", minCost, maxCost))
		}
		auth.Users[user] = append(auth.Users[user], []byte(line))
		return nil
	})
	return auth, f
}

// These are the accepted costs of bcrypt hashes. Each step doubles the time of a
// comparison. The highest accepted cost takes some seconds; cost 31, the highest that
// exists, would take days.
const (
	minCost = bcrypt.MinCost
	maxCost = 15
)

// isBcrypt reports whether a line is a bcrypt hash ($2y$10$ and 53 characters) with an
// accepted cost.
func isBcrypt(line string) bool {
	if len(line) != 60 || !slices.Contains([]string{"$2a$", "$2b$", "$2y$"}, line[:4]) {
		return false
	}
	cost, err := bcrypt.Cost([]byte(line))
	return err == nil && cost >= minCost && cost <= maxCost
}

// credentials reads a Secret with one or two hashes of keys or passwords for each client or
// user.
func (c *compiler) credentials(field, secret string, add func(name, line string) *fault) *fault {
	data, f := c.secret(field, secret)
	if f != nil {
		return f
	}
	if len(data) == 0 {
		return &fault{slipwayv1alpha1.ReasonInvalidSecret, fmt.Sprintf("%s: Secret %q is empty", field, secret)}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		lines := strings.Fields(string(data[name]))
		if len(lines) == 0 || len(lines) > maxCredentials {
			return invalidSecret(field, secret, name, "it must have one or two lines")
		}
		for _, line := range lines {
			if f := add(name, line); f != nil {
				return f
			}
		}
	}
	return nil
}

func (c *compiler) secret(field, name string) (map[string][]byte, *fault) {
	data, found := c.in.Secrets[name]
	if !found {
		return nil, &fault{slipwayv1alpha1.ReasonSecretNotFound, fmt.Sprintf("%s: Secret %q %s", field, name, c.in.WhyMissing(name))}
	}
	return data, nil
}

func invalidSecret(field, secret, key, why string) *fault {
	return &fault{slipwayv1alpha1.ReasonInvalidSecret, fmt.Sprintf("%s: key %q of Secret %q cannot be used: %s", field, key, secret, why)}
}

func (c *compiler) newJWT(in *slipwayv1alpha1.JWTAuth) (*JWT, *fault) {
	auth := &JWT{Issuer: in.Issuer, Audiences: slices.Clone(in.Audiences), JWKSURL: in.JWKSURL}
	if in.Issuer == "" || (in.JWKSURL == "") == (in.JWKSSecretRef == nil) {
		return nil, invalid("auth.jwt: issuer and exactly one of jwksURL and jwksSecretRef must be set")
	}
	if in.JWKSURL != "" {
		address, err := url.Parse(in.JWKSURL)
		if err != nil || address.Host == "" || (address.Scheme != "https" && address.Scheme != "http") {
			return nil, invalid("auth.jwt.jwksURL: %q is not an http or https address", in.JWKSURL)
		}
	}
	for _, claim := range in.ClaimsToHeaders {
		header, f := editableHeader("auth.jwt.claimsToHeaders", claim.Header)
		if f != nil {
			return nil, f
		}
		auth.ClaimHeaders = append(auth.ClaimHeaders, ClaimHeader{claim.Claim, header})
	}
	if in.JWKSSecretRef == nil {
		return auth, nil
	}
	var f *fault
	auth.Keys, f = c.keySet(in.JWKSSecretRef)
	return auth, f
}

// keySet reads a JSON Web Key Set from a Secret.
func (c *compiler) keySet(ref *slipwayv1alpha1.SecretKeyReference) (*token.Keys, *fault) {
	const field = "auth.jwt.jwksSecretRef"
	data, f := c.secret(field, ref.Name)
	if f != nil {
		return nil, f
	}
	raw, found := data[ref.Key]
	if !found {
		return nil, &fault{slipwayv1alpha1.ReasonKeyNotFound, fmt.Sprintf("%s: Secret %q has no key %q", field, ref.Name, ref.Key)}
	}
	keys, err := token.ParseKeys(raw)
	if err != nil {
		return nil, invalidSecret(field, ref.Name, ref.Key, "it must be a JSON Web Key Set with a public key for signatures")
	}
	return keys, nil
}

// optionalHeader returns the canonical form of a name, which may be empty.
func optionalHeader(field string, name slipwayv1alpha1.HeaderName) (string, *fault) {
	if name == "" {
		return "", nil
	}
	if textproto.CanonicalMIMEHeaderKey(string(name)) == "Authorization" {
		return "Authorization", nil
	}
	return editableHeader(field, name)
}
