package proxy

import (
	"context"
	"net/http"

	authsetting "github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/published"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// login is how browsers log in for a route.
type login struct {
	client *oidc.Client
	source *published.Source[oidc.Provider]
}

// newProviders returns what providers publish about themselves.
func newProviders(options *Options, fetched func(error)) *published.Registry[oidc.Provider] {
	return published.NewRegistry(published.Options[oidc.Provider]{
		Fetch: oidc.Fetch, Failing: options.ProviderFailing, Fetched: fetched, MissingChanged: options.KeysMissingChanged, Panics: options.Panics, Guard: options.Guard,
	})
}

// loginsOf returns the log-ins that the routes need. A route without one lets nobody in.
func (h *Handler) loginsOf(routes []*table.Route) map[*authsetting.OIDC]*login {
	logins := map[*authsetting.OIDC]*login{}
	for _, route := range routes {
		if route.Auth == nil || route.Auth.OIDC == nil || logins[route.Auth.OIDC] != nil {
			continue
		}
		auth := route.Auth.OIDC
		config := oidc.Config{
			Gateway: h.options.Identity, Scope: auth.Scope, Issuer: auth.Issuer, ClientID: auth.ClientID, Scopes: auth.Scopes,
			RedirectPath: auth.RedirectPath, AfterLogout: auth.AfterLogout, Length: auth.Length, KeepAccessToken: auth.Forward == authsetting.ForwardAccessToken,
			KeepIDToken: auth.Forward == authsetting.ForwardIDToken,
		}
		if config.Scope == "" { // it shares sessions with none
			config.Scope = "route " + route.Name
		}
		for _, secret := range auth.Secrets {
			config.Secrets = append(config.Secrets, string(secret))
		}
		if client, err := oidc.NewClient(config, &h.traffic); err == nil { // the table has checked the secrets
			logins[auth] = &login{client: client, source: h.providers.Source(auth.Issuer)}
		}
	}
	return logins
}

// keepProviders drops the providers that no log-in needs, and what went on with them.
func (h *Handler) keepProviders(logins map[*authsetting.OIDC]*login) {
	used, clients := map[string]bool{}, []*oidc.Client(nil)
	for auth, login := range logins {
		used[auth.Issuer] = true
		clients = append(clients, login.client)
	}
	h.traffic.Keep(clients)
	h.providers.Keep(func(issuer string) bool { return used[issuer] })
}

// checkSession lets a browser in that has logged in. Others it sends to the provider, or refuses them. It also answers the
// requests with which a log-in ends, or a session.
func (e *exchange) checkSession(auth *authsetting.OIDC) bool {
	l := e.state.logins[auth]
	if l == nil {
		return e.refuse(http.StatusServiceUnavailable, "oidc_unavailable")
	}
	b := &oidc.Browser{
		Scheme: e.scheme(), Host: e.forwardedHost(), Cookies: oidc.ReadCookies(e.r.Header["Cookie"]), Now: e.handler.options.Clock.Now(),
	}
	if e.path.ReadsOneWay() {
		switch e.path.Match {
		case auth.RedirectPath:
			return e.finishLogin(l, b)
		case auth.LogoutPath: // never empty
			return e.logOut(l, b)
		}
	}
	session, found := l.client.Session(b)
	if !found {
		return e.beginLogin(l, b)
	}
	ctx, cancel := e.untilDeadline()
	defer cancel()
	fresh, cookies, err := l.client.Fresh(ctx, l.source, e.handler.tokens, b, session)
	switch kind := oidc.KindOf(err); {
	case err == nil:
	case ctx.Err() != nil:
		return e.giveUp()
	case kind == oidc.Refused || kind == oidc.BadToken:
		// It is over, or another replica has just renewed it. So its cookies stay: they may be the new ones by now.
		return e.beginLogin(l, b)
	case kind == oidc.TooLarge:
		return e.refuse(loginStatuses[kind], "oidc_"+kind.String())
	default:
		return e.refuseForNow(http.StatusServiceUnavailable, "oidc_"+kind.String())
	}
	e.setCookies(cookies)
	claims, bearer := fresh.Claims(), ""
	e.facts.identity = claims.Subject()
	e.addClaims(claims, auth.ClaimHeaders)
	switch auth.Forward {
	case authsetting.ForwardAccessToken:
		bearer = fresh.AccessToken
	case authsetting.ForwardIDToken:
		bearer = fresh.IDToken
	case authsetting.ForwardNone:
	}
	if bearer != "" {
		e.facts.add = append(e.facts.add, upstream.Field{Name: "Authorization", Value: "Bearer " + bearer})
	}
	return true
}

// beginLogin sends a browser that asks for a page to the provider.
func (e *exchange) beginLogin(l *login, b *oidc.Browser) bool {
	header := e.w.Header()
	header["Cache-Control"] = []string{"no-store"}
	if !oidc.IsNavigation(e.r) {
		header["Www-Authenticate"] = []string{`Cookie realm="` + e.handler.options.Realm + `"`}
		return e.refuse(http.StatusUnauthorized, "unauthenticated")
	}
	if !e.state.Table.Returns(&e.lookup, e.route) {
		return e.refuse(http.StatusInternalServerError, "oidc_no_return")
	}
	ctx, cancel := e.untilDeadline()
	defer cancel()
	provider := e.awaitProvider(ctx, l)
	if provider == nil {
		return false
	}
	target := e.path.Forward
	if e.query != "" {
		target += "?" + e.query
	}
	location, cookies, err := l.client.Begin(provider, b, target)
	if err != nil {
		return e.refuse(http.StatusInternalServerError, "oidc")
	}
	e.handler.authMetrics.begun.Inc()
	e.setCookies(cookies)
	return e.send(http.StatusFound, location, "unauthenticated")
}

// awaitProvider returns what a provider has published. While there is nothing, it answers the request and returns nil.
func (e *exchange) awaitProvider(ctx context.Context, l *login) *oidc.Provider {
	provider := l.source.Latest(ctx)
	switch {
	case ctx.Err() != nil:
		e.giveUp()
		return nil
	case provider == nil:
		e.refuseForNow(http.StatusServiceUnavailable, "no_provider")
	}
	return provider
}

// send sends the browser to an address, and returns false.
func (e *exchange) send(status int, location, why string) bool {
	e.answer.failure = why
	header := e.w.Header()
	header["Location"], header["Cache-Control"] = []string{location}, []string{"no-store"}
	header["Referrer-Policy"] = []string{"no-referrer"}
	e.answerWith(status, "", nil)
	return false
}

// loginStatuses are the answers to log-ins that have failed.
var loginStatuses = [oidc.Kinds]int{
	oidc.BadState: http.StatusBadRequest, oidc.Refused: http.StatusForbidden, oidc.BadToken: http.StatusForbidden,
	oidc.BadClient: http.StatusBadGateway, oidc.Unavailable: http.StatusServiceUnavailable, oidc.Busy: http.StatusServiceUnavailable, oidc.TooLarge: http.StatusInternalServerError,
}

// finishLogin ends a log-in that the provider has sent back.
func (e *exchange) finishLogin(l *login, b *oidc.Browser) bool {
	e.w.Header()["Cache-Control"] = []string{"no-store"}
	if e.r.Method != http.MethodGet {
		e.w.Header()["Allow"] = []string{http.MethodGet}
		return e.refuse(http.StatusMethodNotAllowed, "method")
	}
	ctx, cancel := e.untilDeadline()
	defer cancel()
	if e.awaitProvider(ctx, l) == nil {
		return false
	}
	session, target, cookies, err := l.client.Finish(ctx, l.source, e.handler.tokens, b, e.query)
	e.setCookies(cookies)
	var kept []*http.Cookie
	if err == nil {
		kept, err = l.client.Keep(b, session)
	}
	kind := oidc.KindOf(err)
	e.handler.authMetrics.logins[kind].Inc()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return e.giveUp()
	default:
		return e.refuseLogin(kind)
	}
	e.setCookies(kept)
	return e.send(http.StatusFound, target, "")
}

// untilDeadline returns the context of the request. It also ends when the time of the route does.
func (e *exchange) untilDeadline() (context.Context, context.CancelFunc) {
	deadline := e.deadline()
	if deadline.IsZero() {
		return e.r.Context(), func() {}
	}
	return context.WithTimeout(e.r.Context(), deadline.Sub(e.handler.options.Clock.Now()))
}

// giveUp ends a request whose client has left, or whose time is over, and returns false.
func (e *exchange) giveUp() bool {
	if e.r.Context().Err() == nil {
		return e.refuse(http.StatusGatewayTimeout, upstream.Timeout.String())
	}
	return e.abandon()
}

// refuseLogin tells the user what to do about a log-in that has failed.
func (e *exchange) refuseLogin(kind oidc.Kind) bool {
	status, text := loginStatuses[kind], "The log-in was not completed. "
	switch {
	case kind == oidc.BadState:
		text = "This log-in was begun too long ago, or in another browser. "
	case status == http.StatusServiceUnavailable:
		e.w.Header()["Retry-After"] = []string{"1"}
	}
	e.answer.failure = "oidc_" + kind.String()
	e.answerWith(status, "text/plain; charset=utf-8", []byte(text+"Open the page again to start over.\n"))
	return false
}

// logOutPage asks the user, for browsers that do not tell who wants to log out.
const logOutPage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Log out</title></head>
<body><form method="post"><button>Log out</button></form></body></html>
`

// logOut ends a session, here and at the provider.
func (e *exchange) logOut(l *login, b *oidc.Browser) bool {
	header := e.w.Header()
	header["Cache-Control"] = []string{"no-store"}
	switch oidc.MayLogOut(e.r, b.Host) {
	case oidc.ConsentMissing:
		return e.refuse(http.StatusForbidden, "cross_site")
	case oidc.ConsentAsk:
		header["Content-Security-Policy"] = []string{"default-src 'none'; frame-ancestors 'none'"}
		header["X-Frame-Options"] = []string{"DENY"}
		e.answerWith(http.StatusOK, "text/html; charset=utf-8", []byte(logOutPage))
		return false
	case oidc.ConsentGiven:
	}
	session, _ := l.client.Session(b)
	e.setCookies(l.client.Forget(b))
	if location := l.client.LogOutURL(l.source.Last(), b, session); location != "" {
		return e.send(http.StatusSeeOther, location, "")
	}
	e.answerWith(http.StatusOK, "text/plain; charset=utf-8", []byte("You are logged out.\n"))
	return false
}

// withoutSessions removes our cookies from the fields Cookie of a request.
func withoutSessions(values []string) []string {
	kept := make([]string, 0, len(values))
	for _, value := range values {
		if value = oidc.Strip(value); value != "" {
			kept = append(kept, value)
		}
	}
	return kept
}
