package proxy

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/oidc"
)

// setCookies notes cookies for the browser. tellCookies sends them.
func (e *exchange) setCookies(cookies []*http.Cookie) {
	for _, cookie := range cookies {
		e.cookies = append(e.cookies, cookie.String())
	}
}

// tellCookies adds the cookies of a session to the head of the answer, whoever gives it. It comes after the backend and the
// route, so that neither removes them, nor lets a cache keep them.
func (e *exchange) tellCookies(header http.Header) {
	e.dropForged(header)
	if len(e.cookies) == 0 {
		return
	}
	for name := range header {
		if isForCaches(name) {
			delete(header, name)
		}
	}
	header["Set-Cookie"] = slices.Concat(header["Set-Cookie"], e.cookies)
	header["Cache-Control"] = []string{"no-store"}
}

// dropForged removes what would set or remove cookies of sessions, in whatever head: of a backend, of a Service that was asked,
// of a route. With such a cookie, a backend could give a browser the session of somebody else.
func (e *exchange) dropForged(header http.Header) {
	dropValues(header, "Set-Cookie", oidc.Mentions)
	if e.state != nil && len(e.state.logins) > 0 {
		dropValues(header, "Clear-Site-Data", clearsCookies)
	}
}

// clearsCookies reports whether a value of Clear-Site-Data removes all cookies of the domain, or may.
func clearsCookies(value string) bool {
	return strings.Contains(strings.ToLower(value), "cookies") || strings.Contains(value, "*")
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
