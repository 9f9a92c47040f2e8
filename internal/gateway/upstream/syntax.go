package upstream

import "strings"

// What RFC 9110 (5.5, 5.6.2) and RFC 9112 (3) allow where, by byte.
const (
	tokenByte = 1 << iota
	visibleByte
	valueByte
)

var byteClass = func() (class [256]uint8) {
	for c := range class {
		switch {
		case c == '\t' || c == ' ':
			class[c] = valueByte
		case c > ' ' && c < 0x7f:
			class[c] = valueByte | visibleByte
		case c >= 0x80:
			class[c] = valueByte
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" {
		class[c] |= tokenByte
	}
	return class
}()

func consistsOf(s string, class uint8) bool {
	for i := 0; i < len(s); i++ {
		if byteClass[s[i]]&class == 0 {
			return false
		}
	}
	return true
}

func isToken(s string) bool      { return s != "" && consistsOf(s, tokenByte) }
func isVisible(s string) bool    { return s != "" && consistsOf(s, visibleByte) }
func isFieldValue(s string) bool { return consistsOf(s, valueByte) }

// trimSpace trims optional whitespace as HTTP knows it.
func trimSpace(s string) string { return strings.Trim(s, " \t") }

// ConnectionField reports whether a field concerns one connection only, or the framing
// of a message on it, and so is never passed on (RFC 9110, 7.6.1).
func ConnectionField(name string) bool {
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

// ForbiddenTrailer reports whether a field may not come in a trailer section, because
// whoever merges it into the header would be deceived (RFC 9110, 6.5.1).
func ForbiddenTrailer(name string) bool {
	if ConnectionField(name) {
		return true
	}
	switch {
	case strings.EqualFold(name, "Trailer"), strings.EqualFold(name, "Authorization"),
		strings.EqualFold(name, "Content-Encoding"), strings.EqualFold(name, "Content-Type"),
		strings.EqualFold(name, "Content-Range"), strings.EqualFold(name, "Cache-Control"),
		strings.EqualFold(name, "Set-Cookie"), strings.EqualFold(name, "WWW-Authenticate"),
		strings.EqualFold(name, "Location"):
		return true
	}
	return false
}

// eachElement calls f with the elements of a comma-separated list.
func eachElement(list string, f func(element string)) {
	for len(list) > 0 {
		element, rest, _ := strings.Cut(list, ",")
		if element = trimSpace(element); element != "" {
			f(element)
		}
		list = rest
	}
}
