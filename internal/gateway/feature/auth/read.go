package auth

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

const (
	// maxCredentials is how many keys or passwords of a client are valid at the same time:
	// the current one and its replacement.
	maxCredentials = 2

	defaultKeyHeader = "X-Api-Key"
)

// source has the Secrets.
type source struct{ feature.Source }

// Read is what a spec asks of clients, with the contents of its Secret. Messages name Secrets, clients and
// users, but never the stored values. With a fault, nobody may be let in.
func Read(in *slipwayv1alpha1.Auth, from feature.Source) (*Policy, *model.Fault) {
	// Equal fields refer to the same Secret, keys and users.
	policy, f := &Policy{ID: feature.Describe(in)}, (*model.Fault)(nil)
	ways := 0
	for _, is := range []bool{in.APIKey != nil, in.Basic != nil, in.JWT != nil, in.External != nil, in.OIDC != nil} {
		if is {
			ways++
		}
	}
	s := &source{from}
	switch {
	case ways != 1:
		f = model.Invalid("auth: exactly one of apiKey, basic, jwt, external and oidc must be set")
	case in.APIKey != nil:
		policy.APIKey, f = s.readAPIKey(in.APIKey)
	case in.Basic != nil:
		policy.Basic, f = s.readBasic(in.Basic)
	case in.JWT != nil:
		policy.JWT, f = s.readJWT(in.JWT)
	case in.OIDC != nil:
		policy.OIDC, f = s.readOIDC(in.OIDC)
	default:
		policy.External, f = readExternal(in.External)
	}
	return policy, f
}

// defaultExternalTimeout is how long a Service may take to answer.
const defaultExternalTimeout = 5 * time.Second

func readExternal(in *slipwayv1alpha1.ExternalAuth) (*External, *model.Fault) {
	timeout, f := feature.Duration("auth.external.timeout", in.Timeout, defaultExternalTimeout)
	if f != nil {
		return nil, f
	}
	external := &External{
		Ref: model.BackendRef{
			Service: string(in.BackendService.Name), Port: in.BackendService.Port,
			Field: "auth.external.backendService",
		},
		Path: cmp.Or(string(in.Path), "/"), RequestHeaders: feature.Words(in.RequestHeaders),
		BackendHeaders: feature.Words(in.BackendHeaders),
		IdentityHeader: string(in.IdentityHeader), Timeout: timeout,
	}
	if len(external.RequestHeaders) == 0 {
		external.RequestHeaders = []string{"Authorization", "Cookie"}
	}
	if in.Body != nil {
		if external.MaxBody = int64(in.Body.MaxBytes); external.MaxBody < 1 {
			return nil, model.Invalid("auth.external.body.maxBytes: %d is less than 1", external.MaxBody)
		}
	}
	switch in.Protocol {
	case "", slipwayv1alpha1.ExternalAuthHTTP:
	case slipwayv1alpha1.ExternalAuthGRPC:
		external.GRPC = true
	default:
		return nil, model.Invalid("auth.external.protocol: %q is neither HTTP nor GRPC", in.Protocol)
	}
	switch in.OnFailure {
	case "", slipwayv1alpha1.AuthFailureRefuse:
	case slipwayv1alpha1.AuthFailureLetIn:
		external.LetIn = true
	default:
		return nil, model.Invalid("auth.external.onFailure: %q is neither Refuse nor LetIn", in.OnFailure)
	}
	return external, nil
}

func (s *source) readAPIKey(in *slipwayv1alpha1.APIKeyAuth) (*APIKey, *model.Fault) {
	auth := &APIKey{
		Header: string(in.Header), QueryParam: in.QueryParam, ClientHeader: string(in.ClientHeader),
		Clients: map[[sha256.Size]byte]string{},
	}
	if auth.Header == "" && auth.QueryParam == "" {
		auth.Header = defaultKeyHeader
	}
	secret := in.SecretRef.Name
	f := s.credentials("auth.apiKey.secretRef", secret, func(client, line string) *model.Fault {
		encoded, isHash := strings.CutPrefix(line, "sha256:")
		hash, err := hex.DecodeString(encoded)
		if !isHash || err != nil || len(hash) != sha256.Size {
			return invalidSecret(
				"auth.apiKey.secretRef", secret, client, "every line must be sha256: and the 64 hexadecimal digits of a key's SHA-256")
		}
		if other, taken := auth.Clients[[sha256.Size]byte(hash)]; taken && other != client {
			return invalidSecret("auth.apiKey.secretRef", secret, client, fmt.Sprintf("it has the same API key as %q", other))
		}
		auth.Clients[[sha256.Size]byte(hash)] = client
		return nil
	})
	return auth, f
}

func (s *source) readBasic(in *slipwayv1alpha1.BasicAuth) (*Basic, *model.Fault) {
	auth := &Basic{Realm: in.Realm, UserHeader: string(in.UserHeader), Users: map[string][][]byte{}}
	secret := in.SecretRef.Name
	f := s.credentials("auth.basic.secretRef", secret, func(user, line string) *model.Fault {
		if !isBcrypt(line) {
			return invalidSecret("auth.basic.secretRef", secret, user,
				fmt.Sprintf(
					"every line must be a bcrypt hash, which begins with $2y$, $2b$ or $2a$, of a cost from %d to %d", minCost, maxCost))
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
func (s *source) credentials(field, secret string, add func(name, line string) *model.Fault) *model.Fault {
	data, f := s.Secret(field, secret)
	if f != nil {
		return f
	}
	if len(data) == 0 {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidSecret, Message: fmt.Sprintf("%s: Secret %q is empty", field, secret)}
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

func invalidSecret(field, secret, key, why string) *model.Fault {
	return &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidSecret, Message: fmt.Sprintf(
		"%s: key %q of Secret %q cannot be used: %s", field, key, secret, why)}
}

func (s *source) readJWT(in *slipwayv1alpha1.JWTAuth) (*JWT, *model.Fault) {
	auth := &JWT{Issuer: in.Issuer, Audiences: slices.Clone(in.Audiences), JWKSURL: in.JWKSURL}
	for _, claim := range in.ClaimsToHeaders {
		auth.ClaimHeaders = append(auth.ClaimHeaders, ClaimHeader{Claim: claim.Claim, Header: string(claim.Header)})
	}
	for _, claim := range in.RequireClaims {
		auth.Required = append(auth.Required, RequiredClaim{Claim: claim.Claim, Values: slices.Clone(claim.Values)})
	}
	if in.JWKSSecretRef == nil {
		return auth, nil
	}
	var f *model.Fault
	auth.Keys, f = s.keySet(in.JWKSSecretRef)
	return auth, f
}

// key reads a key of a Secret. It returns all of the Secret, too.
func (s *source) key(field, secret, key string) (value []byte, data map[string][]byte, f *model.Fault) {
	if data, f = s.Secret(field, secret); f != nil {
		return nil, nil, f
	}
	value, found := data[key]
	if !found {
		return nil, nil, &model.Fault{
			Reason: slipwayv1alpha1.ReasonKeyNotFound, Message: fmt.Sprintf("%s: Secret %q has no key %q", field, secret, key),
		}
	}
	return value, data, nil
}

// keySet reads a JSON Web Key Set from a Secret.
func (s *source) keySet(ref *slipwayv1alpha1.SecretKeyReference) (*token.Keys, *model.Fault) {
	const field = "auth.jwt.jwksSecretRef"
	raw, _, f := s.key(field, ref.Name, ref.Key)
	if f != nil {
		return nil, f
	}
	keys, err := token.ParseKeys(raw)
	if err != nil {
		return nil, invalidSecret(field, ref.Name, ref.Key, "it must be a JSON Web Key Set with a public key for signatures")
	}
	return keys, nil
}
