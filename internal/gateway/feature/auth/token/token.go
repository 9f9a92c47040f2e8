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
	// Leeway is the accepted difference between the clocks of issuer and gateway.
	Leeway = 30 * time.Second
	// MaxToken is the size of the largest accepted token, in bytes.
	MaxToken = 16 << 10
)

// algorithms are the accepted signature algorithms. All of them need a private key. So
// neither "none" is accepted, nor a MAC that uses the public key as its secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// ErrUnknownKey is returned for a token whose key is not in the set. The issuer may have
// published a new one.
var ErrUnknownKey = errors.New("the token is signed with a key that is not known")

var (
	errSignature = errors.New("the issuer has not signed it, or it holds no claims")
	errNoExpiry  = errors.New("the token never expires")
	errTooLong   = fmt.Errorf("the token is longer than %d bytes", MaxToken)
)

// Rules are the requirements for a token.
type Rules struct {
	// Issuer is the required value of the claim iss.
	Issuer string
	// Audiences: the claim aud must have at least one of them. Empty: any audience.
	Audiences []string
}

// Verify checks a token in compact form: its signature, its issuer, its audience, and
// whether it is valid now. The token must have an expiry time (claim exp). Errors contain
// nothing of the token.
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
