package upstream

import "strings"

// These classes say which bytes RFC 9110 (5.5, 5.6.2) and RFC 9112 (3) allow where.
const (
	tokenByte = 1 << iota
	visibleByte
	valueByte
	highByte
)

var byteClass = func() (class [256]uint8) {
	for c := range class {
		switch {
		case c == '\t' || c == ' ':
			class[c] = valueByte
		case c > ' ' && c < 0x7f:
			class[c] = valueByte | visibleByte
		case c >= 0x80:
			class[c] = valueByte | highByte
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

func isToken(s string) bool   { return s != "" && consistsOf(s, tokenByte) }
func isVisible(s string) bool { return s != "" && consistsOf(s, visibleByte) }

// isTarget takes bytes above ASCII for what they are to a client that did not escape them.
func isTarget(s string) bool     { return s != "" && consistsOf(s, visibleByte|highByte) }
func isFieldValue(s string) bool { return consistsOf(s, valueByte) }

// trimSpace trims optional whitespace as HTTP knows it.
func trimSpace(s string) string { return strings.Trim(s, " \t") }

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
