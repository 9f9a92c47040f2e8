package serve

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// Step lets in the clients of a route that prove who they are.
type Step struct {
	*auth.Policy

	engine   *Engine
	keys     *jwks.Source      // of tokens; nil: the route has them itself
	login    *login            // nil: nobody can log in
	service  *upstream.Service // that is asked; nil: none
	protocol upstream.Protocol // of service
	most     int64             // bytes of a body that service is shown
}

// Admit identifies the client. If it cannot, it answers the request and returns
// false.
func (s *Step) Admit(e *exchange.Exchange) bool {
	e.Facts.Proven, e.Facts.Hide, e.Facts.Evaluated = true, slices.Clip(s.Hidden), s.Judged
	switch {
	case s.APIKey != nil:
		return s.checkAPIKey(e, s.APIKey)
	case s.Basic != nil:
		return s.checkPassword(e, s.Basic)
	case s.External != nil:
		return s.askExternal(e, s.External)
	case s.OIDC != nil:
		return s.checkSession(e, s.OIDC)
	}
	return s.checkToken(e, s.JWT)
}

// prove notes who the client is, and tells the backend so in a field. Empty: it does not.
func (s *Step) prove(e *exchange.Exchange, identity, field string) bool {
	e.Facts.Identity = identity
	if field != "" {
		e.Facts.Add = append(e.Facts.Add, upstream.Field{Name: field, Value: identity})
	}
	return true
}

// checkAPIKey looks for a key in the header, then in the query. The backend gets neither.
func (s *Step) checkAPIKey(e *exchange.Exchange, policy *auth.APIKey) bool {
	key := ""
	if policy.Header != "" {
		key = e.Header().Get(policy.Header)
	}
	if policy.QueryParam != "" {
		value, rest := cutParam(e.Query, policy.QueryParam)
		e.Query = rest
		if key == "" {
			key = value
		}
	}
	client, ok := "", false
	if key != "" {
		client, ok = policy.Client(key)
	}
	if !ok {
		return e.Refuse(http.StatusUnauthorized, "unauthenticated")
	}
	return s.prove(e, client, policy.ClientHeader)
}

// cutParam removes a parameter from a query. It returns the parameter's first value and the
// rest of the query.
func cutParam(query, name string) (value, rest string) {
	var kept []string
	found := false
	for part := range strings.SplitSeq(query, "&") {
		key, text, _ := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(key); err != nil || decoded != name {
			kept = append(kept, part)
			continue
		}
		if decoded, err := url.QueryUnescape(text); err == nil && !found {
			value, found = decoded, true
		}
	}
	return value, strings.Join(kept, "&")
}

// checkPassword checks the user's password. If the check cannot run now, the answer says
// when to try again, which tells nothing about the password.
func (s *Step) checkPassword(e *exchange.Exchange, policy *auth.Basic) bool {
	user, password, ok := e.BasicAuth()
	verdict := passwordWrong
	if ok {
		verdict = s.engine.passwords.check(e.Context(), attempt{
			users: policy.Users, user: user, password: password, client: e.Client.Address, deadline: e.Deadline(),
		})
		s.engine.metrics.passwords[verdict].Inc()
	}
	switch verdict {
	case passwordRight:
		return s.prove(e, user, policy.UserHeader)
	case passwordClientBusy:
		return e.RefuseForNow(http.StatusTooManyRequests, "password_client_busy")
	case passwordBusy:
		return e.RefuseForNow(http.StatusServiceUnavailable, "password_busy")
	case passwordTimeout:
		return e.Refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case passwordCanceled:
		return e.Abandon()
	case passwordWrong:
	}
	realm := policy.Realm
	if realm == "" {
		realm = e.Realm
	}
	e.Head()["Www-Authenticate"] = []string{"Basic realm=" + strconv.Quote(realm) + `, charset="UTF-8"`}
	return e.Refuse(http.StatusUnauthorized, "unauthenticated")
}
