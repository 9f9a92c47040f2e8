package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/token"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// checkToken checks the client's token. If the issuer's keys could never be fetched, the
// token cannot be checked, and the answer is 503.
func (e *exchange) checkToken(auth *authsetting.JWT) bool {
	text, ok := bearer(e.r.Header["Authorization"])
	if !ok {
		return e.askForToken("")
	}
	keys, source := auth.Keys, (*jwks.Source)(nil)
	if keys == nil {
		source = e.state.keys[auth.JWKSURL]
		keys = source.Latest(e.r.Context())
	}
	if keys == nil {
		return e.refuse(http.StatusServiceUnavailable, "no_keys")
	}
	rules := token.Rules{Issuer: auth.Issuer, Audiences: auth.Audiences}
	claims, err := keys.Verify(text, rules, e.handler.options.Clock.Now())
	if errors.Is(err, token.ErrUnknownKey) && source != nil {
		if newer := source.Newer(e.r.Context(), keys); newer != nil {
			claims, err = newer.Verify(text, rules, e.handler.options.Clock.Now())
		}
	}
	if err != nil {
		return e.askForToken(`, error="invalid_token"`)
	}
	e.facts.identity = claims.Subject()
	for _, required := range auth.Required {
		if !claims.Has(required.Claim, required.Values) {
			e.challenge(`, error="insufficient_scope"`)
			return e.refuse(http.StatusForbidden, "claims")
		}
	}
	e.addClaims(claims, auth.ClaimHeaders)
	return true
}

// askForToken answers what is missing, as RFC 6750 defines it.
func (e *exchange) askForToken(why string) bool {
	e.challenge(why)
	return e.refuse(http.StatusUnauthorized, "unauthenticated")
}

func (e *exchange) challenge(why string) {
	e.w.Header()["Www-Authenticate"] = []string{"Bearer realm=" + strconv.Quote(e.handler.options.Realm) + why}
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
func (e *exchange) addClaims(claims token.Claims, headers []authsetting.ClaimHeader) {
	for _, header := range headers {
		if text, found := claims.Text(header.Claim); found {
			e.facts.add = append(e.facts.add, upstream.Field{Name: header.Header, Value: text})
		}
	}
}
