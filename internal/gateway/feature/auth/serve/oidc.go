package serve

import (
	"context"
	"net/http"

	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/published"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// login is how browsers log in for a route.
type login struct {
	client *oidc.Client
	source *published.Source[oidc.Provider]
}

// checkSession lets a browser in that has logged in. Others it sends to the provider, or refuses them. It also answers the
// requests with which a log-in ends, or a session.
func (s *Step) checkSession(e *exchange.Exchange, policy *auth.OIDC) bool {
	l := s.login
	if l == nil {
		return e.Refuse(http.StatusServiceUnavailable, "oidc_unavailable")
	}
	b := &oidc.Browser{
		Scheme: e.Scheme(), Host: e.ForwardedHost(), Cookies: oidc.ReadCookies(e.Header()["Cookie"]), Now: e.Clock.Now(),
	}
	if e.ReadsOneWay() {
		switch e.Match {
		case policy.RedirectPath:
			return s.finishLogin(e, l, b)
		case policy.LogoutPath: // never empty
			return s.logOut(e, l, b)
		}
	}
	session, found := l.client.Session(b)
	if !found {
		return s.beginLogin(e, l, b)
	}
	ctx, cancel := e.UntilDeadline()
	defer cancel()
	fresh, cookies, err := l.client.Fresh(ctx, l.source, s.engine.Tokens, b, session)
	switch kind := oidc.KindOf(err); {
	case err == nil:
	case ctx.Err() != nil:
		return e.GiveUp()
	case kind == oidc.Refused || kind == oidc.BadToken:
		// It is over, or another replica has just renewed it. So its cookies stay: they may be the new ones by now.
		return s.beginLogin(e, l, b)
	case kind == oidc.TooLarge:
		return e.Refuse(loginStatuses[kind], "oidc_"+kind.String())
	default:
		return e.RefuseForNow(http.StatusServiceUnavailable, "oidc_"+kind.String())
	}
	s.setCookies(e, cookies)
	claims, bearer := fresh.Claims(), ""
	e.Facts.Identity = claims.Subject()
	s.addClaims(e, claims, policy.ClaimHeaders)
	switch policy.Forward {
	case auth.ForwardAccessToken:
		bearer = fresh.AccessToken
	case auth.ForwardIDToken:
		bearer = fresh.IDToken
	case auth.ForwardNone:
	}
	if bearer != "" {
		e.Facts.Add = append(e.Facts.Add, upstream.Field{Name: "Authorization", Value: "Bearer " + bearer})
	}
	return true
}

// beginLogin sends a browser that asks for a page to the provider.
func (s *Step) beginLogin(e *exchange.Exchange, l *login, b *oidc.Browser) bool {
	header := e.Head()
	header["Cache-Control"] = []string{"no-store"}
	if !oidc.IsNavigation(e.Method(), e.Header()) {
		header["Www-Authenticate"] = []string{`Cookie realm="` + e.Realm + `"`}
		return e.Refuse(http.StatusUnauthorized, "unauthenticated")
	}
	if !e.Returns() {
		return e.Refuse(http.StatusInternalServerError, "oidc_no_return")
	}
	ctx, cancel := e.UntilDeadline()
	defer cancel()
	provider := s.awaitProvider(ctx, e, l)
	if provider == nil {
		return false
	}
	target := e.Path
	if e.Query != "" {
		target += "?" + e.Query
	}
	location, cookies, err := l.client.Begin(provider, b, target)
	if err != nil {
		return e.Refuse(http.StatusInternalServerError, "oidc")
	}
	s.engine.metrics.begun.Inc()
	s.setCookies(e, cookies)
	return s.send(e, http.StatusFound, location, "unauthenticated")
}

// awaitProvider returns what a provider has published. While there is nothing, it answers the request and returns nil.
func (s *Step) awaitProvider(ctx context.Context, e *exchange.Exchange, l *login) *oidc.Provider {
	provider := l.source.Latest(ctx)
	switch {
	case ctx.Err() != nil:
		e.GiveUp()
		return nil
	case provider == nil:
		e.RefuseForNow(http.StatusServiceUnavailable, "no_provider")
	}
	return provider
}

// send sends the browser to an address, and returns false.
func (s *Step) send(e *exchange.Exchange, status int, location, why string) bool {
	e.Answer.Failure = why
	header := e.Head()
	header["Location"], header["Cache-Control"] = []string{location}, []string{"no-store"}
	header["Referrer-Policy"] = []string{"no-referrer"}
	e.AnswerWith(status, "", nil)
	return false
}

// loginStatuses are the answers to log-ins that have failed.
var loginStatuses = [oidc.Kinds]int{
	oidc.BadState: http.StatusBadRequest, oidc.Refused: http.StatusForbidden, oidc.BadToken: http.StatusForbidden,
	oidc.BadClient: http.StatusBadGateway, oidc.Unavailable: http.StatusServiceUnavailable, oidc.Busy: http.StatusServiceUnavailable,
	oidc.TooLarge: http.StatusInternalServerError,
}

// finishLogin ends a log-in that the provider has sent back.
func (s *Step) finishLogin(e *exchange.Exchange, l *login, b *oidc.Browser) bool {
	e.Head()["Cache-Control"] = []string{"no-store"}
	if e.Method() != http.MethodGet {
		e.Head()["Allow"] = []string{http.MethodGet}
		return e.Refuse(http.StatusMethodNotAllowed, "method")
	}
	ctx, cancel := e.UntilDeadline()
	defer cancel()
	if s.awaitProvider(ctx, e, l) == nil {
		return false
	}
	session, target, cookies, err := l.client.Finish(ctx, l.source, s.engine.Tokens, b, e.Query)
	s.setCookies(e, cookies)
	var kept []*http.Cookie
	if err == nil {
		kept, err = l.client.Keep(b, session)
	}
	kind := oidc.KindOf(err)
	s.engine.metrics.logins[kind].Inc()
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return e.GiveUp()
	default:
		return s.refuseLogin(e, kind)
	}
	s.setCookies(e, kept)
	return s.send(e, http.StatusFound, target, "")
}

// refuseLogin tells the user what to do about a log-in that has failed.
func (s *Step) refuseLogin(e *exchange.Exchange, kind oidc.Kind) bool {
	status, text := loginStatuses[kind], "The log-in was not completed. "
	switch {
	case kind == oidc.BadState:
		text = "This log-in was begun too long ago, or in another browser. "
	case status == http.StatusServiceUnavailable:
		e.Head()["Retry-After"] = []string{"1"}
	}
	e.Answer.Failure = "oidc_" + kind.String()
	e.AnswerWith(status, "text/plain; charset=utf-8", []byte(text+"Open the page again to start over.\n"))
	return false
}

// logOutPage asks the user, for browsers that do not tell who wants to log out.
const logOutPage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Log out</title></head>
<body><form method="post"><button>Log out</button></form></body></html>
`

// logOut ends a session, here and at the provider.
func (s *Step) logOut(e *exchange.Exchange, l *login, b *oidc.Browser) bool {
	header := e.Head()
	header["Cache-Control"] = []string{"no-store"}
	switch oidc.MayLogOut(e.Method(), e.Header(), b.Host) {
	case oidc.ConsentMissing:
		return e.Refuse(http.StatusForbidden, "cross_site")
	case oidc.ConsentAsk:
		header["Content-Security-Policy"] = []string{"default-src 'none'; frame-ancestors 'none'"}
		header["X-Frame-Options"] = []string{"DENY"}
		e.AnswerWith(http.StatusOK, "text/html; charset=utf-8", []byte(logOutPage))
		return false
	case oidc.ConsentGiven:
	}
	session, _ := l.client.Session(b)
	s.setCookies(e, l.client.Forget(b))
	if location := l.client.LogOutURL(l.source.Last(), b, session); location != "" {
		return s.send(e, http.StatusSeeOther, location, "")
	}
	e.AnswerWith(http.StatusOK, "text/plain; charset=utf-8", []byte("You are logged out.\n"))
	return false
}

// StripCookies removes our cookies from the fields Cookie of a request.
func StripCookies(values []string) []string {
	kept := make([]string, 0, len(values))
	for _, value := range values {
		if value = oidc.Strip(value); value != "" {
			kept = append(kept, value)
		}
	}
	return kept
}
