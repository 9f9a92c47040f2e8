package token

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// Leeway is how far the clocks of issuer and gateway may be apart.
	Leeway = 30 * time.Second
	// MaxToken is the size of the largest token that is looked at, in bytes.
	MaxToken = 16 << 10
)

// algorithms are all that a token may be signed with: none of them works without a private
// key, so neither "none" nor a MAC with the public key for a secret gets anybody in.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// ErrUnknownKey is the error for a token that names a key that is not in the set: the
// issuer may have a new one.
var ErrUnknownKey = errors.New("the token is signed with a key that is not known")

var (
	errSignature = errors.New("the issuer has not signed it, or it holds no claims")
	errNoExpiry  = errors.New("the token never expires")
	errTooLong   = fmt.Errorf("the token is longer than %d bytes", MaxToken)
)

// Rules are what a token must say.
type Rules struct {
	// Issuer is what the claim iss must be.
	Issuer string
	// Audiences of which the claim aud must have one. Empty: any.
	Audiences []string
}

// Verify checks a token in its compact form: who signed it, who issued it, whom it is for,
// and that it is valid now. It must say until when (claim exp). Errors hold nothing of it.
func (k *Keys) Verify(text string, rules Rules, now time.Time) (Claims, error) {
	if len(text) > MaxToken {
		return nil, errTooLong
	}
	parsed, err := jwt.ParseSigned(text, algorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, errors.New("it is not a token, or one with an algorithm that is not accepted")
	}
	header := parsed.Headers[0]
	candidates, known := k.candidates(header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if !known {
		return nil, ErrUnknownKey
	}
	var registered jwt.Claims
	var all Claims
	signed := slices.ContainsFunc(candidates, func(key publicKey) bool {
		return parsed.Claims(key.key, &registered, &all) == nil
	})
	if !signed {
		return nil, errSignature
	}
	if registered.Expiry == nil {
		return nil, errNoExpiry
	}
	expected := jwt.Expected{Issuer: rules.Issuer, AnyAudience: rules.Audiences, Time: now}
	if err := registered.ValidateWithLeeway(expected, Leeway); err != nil {
		return nil, err
	}
	return all, nil
}
