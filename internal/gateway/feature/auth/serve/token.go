package serve

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// checkToken checks the client's token. If the issuer's keys could never be fetched, the
// token cannot be checked, and the answer is 503.
func (s *Step) checkToken(e *exchange.Exchange, policy *auth.JWT) bool {
	text, ok := bearer(e.Header()["Authorization"])
	if !ok {
		return s.askForToken(e, "")
	}
	keys, source := policy.Keys, (*jwks.Source)(nil)
	if keys == nil {
		source = s.keys
		keys = source.Latest(e.Context())
	}
	if keys == nil {
		return e.Refuse(http.StatusServiceUnavailable, "no_keys")
	}
	rules := token.Rules{Issuer: policy.Issuer, Audiences: policy.Audiences}
	claims, err := keys.Verify(text, rules, e.Clock.Now())
	if errors.Is(err, token.ErrUnknownKey) && source != nil {
		if newer := source.Newer(e.Context(), keys); newer != nil {
			claims, err = newer.Verify(text, rules, e.Clock.Now())
		}
	}
	if err != nil {
		return s.askForToken(e, `, error="invalid_token"`)
	}
	e.Facts.Identity = claims.Subject()
	for _, required := range policy.Required {
		if !claims.Has(required.Claim, required.Values) {
			s.challenge(e, `, error="insufficient_scope"`)
			return e.Refuse(http.StatusForbidden, "claims")
		}
	}
	s.addClaims(e, claims, policy.ClaimHeaders)
	return true
}

// askForToken answers what is missing, as RFC 6750 defines it.
func (s *Step) askForToken(e *exchange.Exchange, why string) bool {
	s.challenge(e, why)
	return e.Refuse(http.StatusUnauthorized, "unauthenticated")
}

func (s *Step) challenge(e *exchange.Exchange, why string) {
	e.Head()["Www-Authenticate"] = []string{"Bearer realm=" + strconv.Quote(e.Realm) + why}
}

// bearer returns the token, if there is exactly one Authorization field.
func bearer(fields []string) (string, bool) {
	if len(fields) != 1 {
		return "", false
	}
	scheme, text, found := strings.Cut(fields[0], " ")
	return strings.TrimLeft(text, " "), found && strings.EqualFold(scheme, "Bearer")
}

// addClaims adds claims for the backend.
func (s *Step) addClaims(e *exchange.Exchange, claims token.Claims, headers []auth.ClaimHeader) {
	for _, header := range headers {
		if text, found := claims.Text(header.Claim); found {
			e.Facts.Add = append(e.Facts.Add, upstream.Field{Name: header.Header, Value: text})
		}
	}
}
