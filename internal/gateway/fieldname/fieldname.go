// Package fieldname classifies the names of HTTP fields for a gateway. It is pure.
package fieldname

import (
	"net/textproto"
	"strings"
)

// Folded returns a name as programs may read it that know fields by the names of variables: a CGI program gets X-User and X.User as
// HTTP_X_USER (RFC 3875, 4.1.18). Every character but letters and digits becomes a hyphen, and the result is in canonical form. To
// such a program, fields with the same folded name are one.
func Folded(name string) string {
	for i := range len(name) {
		if isOdd(rune(name[i])) {
			name = strings.Map(func(c rune) rune {
				if isOdd(c) {
					return '-'
				}
				return c
			}, name)
			break
		}
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

func isOdd(c rune) bool {
	return c != '-' && (c < '0' || '9' < c) && (c < 'A' || 'Z' < c) && (c < 'a' || 'z' < c)
}

// OfConnection reports whether a field belongs to one connection or to the framing of a
// message. Such a field is never forwarded (RFC 9110, 7.6.1).
func OfConnection(name string) bool {
	switch len(name) {
	case 2:
		return strings.EqualFold(name, "TE")
	case 4:
		return strings.EqualFold(name, "Host")
	case 6:
		return strings.EqualFold(name, "Expect")
	case 7:
		return strings.EqualFold(name, "Upgrade")
	case 10:
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case 14:
		return strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "HTTP2-Settings")
	case 16:
		return strings.EqualFold(name, "Proxy-Connection")
	case 17:
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}

// ForbiddenTrailer reports whether a field must not be in a trailer section. A recipient
// that merges trailers into the header would treat it as a header field (RFC 9110, 6.5.1).
func ForbiddenTrailer(name string) bool {
	if OfConnection(name) {
		return true
	}
	switch {
	case strings.EqualFold(name, "Trailer"), strings.EqualFold(name, "Authorization"),
		strings.EqualFold(name, "Content-Encoding"), strings.EqualFold(name, "Content-Type"),
		strings.EqualFold(name, "Content-Range"), strings.EqualFold(name, "Cache-Control"),
		strings.EqualFold(name, "Set-Cookie"), strings.EqualFold(name, "WWW-Authenticate"),
		strings.EqualFold(name, "Location"), strings.EqualFold(name, "Cookie"), strings.EqualFold(name, "Clear-Site-Data"):
		return true
	}
	return false
}
