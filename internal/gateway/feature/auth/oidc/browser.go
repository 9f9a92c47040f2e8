package oidc

import (
	"net/http"
	"net/url"
	"strings"
)

// maxTarget is how long the address may be to which a browser comes back after the log-in. It is in a cookie.
const maxTarget = 512

// IsNavigation reports whether a browser asks for a page. Only then can it be sent to the provider: a script would follow into
// a page that it does not expect.
func IsNavigation(method string, header http.Header) bool {
	if method != http.MethodGet && method != http.MethodHead {
		return false
	}
	if mode := header["Sec-Fetch-Mode"]; len(mode) > 1 || len(mode) == 1 && mode[0] != "navigate" {
		return false
	}
	if len(header["Upgrade"]) > 0 || strings.Contains(header.Get("Sec-Purpose"), "prefetch") {
		return false
	}
	for _, accept := range header["Accept"] {
		for kind := range strings.SplitSeq(accept, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			if strings.EqualFold(strings.TrimSpace(kind), "text/html") {
				return true
			}
		}
	}
	return false
}

// SafeTarget returns an address on the same host for a path and a query. A browser reads //host and /\host as another host, and
// removes line ends and tabs before it looks.
func SafeTarget(target string) string {
	if len(target) > maxTarget || !strings.HasPrefix(target, "/") {
		return "/"
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return "/"
		}
	}
	if strings.HasPrefix(target, "//") {
		return "/"
	}
	return target
}

// Consent says what a request to log out is.
type Consent int

const (
	// ConsentMissing is a request that another site has caused, or may have.
	ConsentMissing Consent = iota
	// ConsentAsk is a request of which the browser does not tell who has caused it. The user must be asked.
	ConsentAsk
	// ConsentGiven is a request of the site itself, or of the user.
	ConsentGiven
)

// MayLogOut tells whether a request to a host, as the browser sees it, may log out: another site must not be able to, for example
// with an image. Neither must an image on the site itself, which some user may have posted, nor a page that is fetched in advance.
func MayLogOut(method string, header http.Header, host string) Consent {
	switch site := header["Sec-Fetch-Site"]; {
	case method != http.MethodGet && method != http.MethodPost:
		return ConsentMissing
	case len(site) > 1:
		return ConsentMissing
	case len(site) == 1 && method == http.MethodGet && !IsNavigation(method, header):
		return ConsentMissing
	case len(site) == 1 && (site[0] == "same-origin" || site[0] == "none"):
		return ConsentGiven
	case len(site) == 1:
		return ConsentMissing
	case method == http.MethodGet:
		return ConsentAsk
	}
	switch origin := header["Origin"]; {
	case len(origin) != 1:
		return ConsentMissing
	default:
		parsed, err := url.Parse(origin[0])
		if err != nil || !strings.EqualFold(parsed.Host, host) {
			return ConsentMissing
		}
		return ConsentGiven
	}
}
