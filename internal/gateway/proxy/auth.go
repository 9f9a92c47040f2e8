package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// auth lets in the clients of a route that prove who they are.
type auth struct{ *authsetting.Policy }

// admit identifies the client. If it cannot, it answers the request and returns
// false.
func (a auth) admit(e *exchange) bool {
	e.facts.proven, e.facts.hide, e.facts.judged = true, slices.Clip(a.Hidden), a.Judged
	switch {
	case a.APIKey != nil:
		return e.checkAPIKey(a.APIKey)
	case a.Basic != nil:
		return e.checkPassword(a.Basic)
	case a.External != nil:
		return e.askExternal(a.External)
	case a.OIDC != nil:
		return e.checkSession(a.OIDC)
	}
	return e.checkToken(a.JWT)
}

// prove notes who the client is, and tells the backend so in a field. Empty: it does not.
func (e *exchange) prove(identity, field string) bool {
	e.facts.identity = identity
	if field != "" {
		e.facts.add = append(e.facts.add, upstream.Field{Name: field, Value: identity})
	}
	return true
}

// checkAPIKey looks for a key in the header, then in the query. The backend gets neither.
func (e *exchange) checkAPIKey(auth *authsetting.APIKey) bool {
	key := ""
	if auth.Header != "" {
		key = e.r.Header.Get(auth.Header)
	}
	if auth.QueryParam != "" {
		value, rest := cutParam(e.query, auth.QueryParam)
		e.query = rest
		if key == "" {
			key = value
		}
	}
	client, ok := "", false
	if key != "" {
		client, ok = auth.Client(key)
	}
	if !ok {
		return e.refuse(http.StatusUnauthorized, "unauthenticated")
	}
	return e.prove(client, auth.ClientHeader)
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
func (e *exchange) checkPassword(auth *authsetting.Basic) bool {
	user, password, ok := e.r.BasicAuth()
	verdict := passwordWrong
	if ok {
		verdict = e.handler.passwords.check(e.r.Context(), attempt{
			users: auth.Users, user: user, password: password, client: e.client.address, deadline: e.deadline(),
		})
		e.handler.authMetrics.passwords[verdict].Inc()
	}
	switch verdict {
	case passwordRight:
		return e.prove(user, auth.UserHeader)
	case passwordClientBusy:
		return e.refuseForNow(http.StatusTooManyRequests, "password_client_busy")
	case passwordBusy:
		return e.refuseForNow(http.StatusServiceUnavailable, "password_busy")
	case passwordTimeout:
		return e.refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	case passwordCanceled:
		return e.abandon()
	case passwordWrong:
	}
	realm := auth.Realm
	if realm == "" {
		realm = e.handler.options.Realm
	}
	e.w.Header()["Www-Authenticate"] = []string{"Basic realm=" + strconv.Quote(realm) + `, charset="UTF-8"`}
	return e.refuse(http.StatusUnauthorized, "unauthenticated")
}

// refuseForNow refuses a request that may succeed a second later.
func (e *exchange) refuseForNow(status int, failure string) bool {
	e.w.Header()["Retry-After"] = []string{"1"}
	return e.refuse(status, failure)
}
