package serve

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/compress"
	"github.com/slipway-dev/slipway/internal/gateway/exchange"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/oidc"
)

// Guard keeps the cookies of sessions to the gateway. It holds on every route of a table, asked for or not.
type Guard struct{ logins bool } // a route has log-ins

// setCookies notes cookies for the browser. Guard.Tell sends them.
func (s *Step) setCookies(e *exchange.Exchange, cookies []*http.Cookie) {
	for _, cookie := range cookies {
		e.Facts.Cookies = append(e.Facts.Cookies, cookie.String())
	}
}

// Tell adds the cookies of a session to the head of the answer, whoever gives it. It comes after the backend and the
// route, so that neither removes them, nor lets a cache keep them.
func (g Guard) Tell(e *exchange.Exchange, header http.Header) {
	g.Hint(e, header)
	if len(e.Facts.Cookies) == 0 {
		return
	}
	for name := range header {
		if isForCaches(name) {
			delete(header, name)
		}
	}
	header["Set-Cookie"] = slices.Concat(header["Set-Cookie"], e.Facts.Cookies)
	control := "no-store"
	if compress.Forbidden(header) {
		control += ", no-transform"
	}
	header["Cache-Control"] = []string{control}
}

// Hint removes what would set or remove cookies of sessions, in whatever head: of a backend, of a Service that was asked,
// of a route. With such a cookie, a backend could give a browser the session of somebody else.
func (g Guard) Hint(_ *exchange.Exchange, header http.Header) {
	dropValues(header, "Set-Cookie", oidc.Mentions)
	if g.logins {
		keepCookies(header)
	}
}

// allButCookies are the types of https://www.w3.org/TR/clear-site-data/ and of browsers for which "*" stands, without cookies.
const allButCookies = `"cache", "clientHints", "executionContexts", "prefetchCache", "prerenderCache", "storage"`

// keepCookies has a response remove no cookies of the domain. What else Clear-Site-Data removes stays.
func keepCookies(header http.Header) {
	var kept []string
	for _, value := range header["Clear-Site-Data"] {
		for kind := range strings.SplitSeq(value, ",") {
			switch kind = strings.TrimSpace(kind); {
			case strings.Contains(kind, "*"):
				kept = append(kept, allButCookies)
			case kind != "" && !strings.Contains(strings.ToLower(kind), "cookies"):
				kept = append(kept, kind)
			}
		}
	}
	if delete(header, "Clear-Site-Data"); len(kept) > 0 {
		header["Clear-Site-Data"] = []string{strings.Join(kept, ", ")}
	}
}

// dropValues removes some values of a field. The slice stays as it is: it may belong to the table.
func dropValues(header http.Header, name string, drop func(value string) bool) {
	values := header[name]
	if !slices.ContainsFunc(values, drop) {
		return
	}
	if header[name] = slices.DeleteFunc(slices.Clone(values), drop); len(header[name]) == 0 {
		delete(header, name)
	}
}

// isForCaches reports whether a field tells some caches more than Cache-Control does: RFC 9213, and what nginx and others had before.
func isForCaches(name string) bool {
	return strings.HasSuffix(name, "-Cache-Control") || name == "Surrogate-Control" || name == "X-Accel-Expires"
}
