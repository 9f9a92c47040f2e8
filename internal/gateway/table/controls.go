package table

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Engines for regular expressions differ in what ends a line. In PCRE, Perl, Python and .NET the end ($) is also before a last line
// feed, in Java before each of six ends of a line, and in Ruby every line is a text of its own. So a backend may take /admin%0a for
// /admin. Other programs cut control characters off. The gateway does not model all that: what may be read with a control character
// goes on only if no route could keep out more clients or requests than the one that was found, or change the fields that its backend
// gets in another way.

// hasControl reports whether a text has a control character, or a character that ends a line for some engine: those of ASCII, U+0080
// to U+009F, U+2028 and U+2029. A byte 0x85 that is not part of a character counts too, because it ends a line in Latin-1.
func hasControl(text string) bool {
	for i := 0; i < len(text); {
		is, size := isControl(text[i:])
		if is {
			return true
		}
		i += size
	}
	return false
}

// isControl reports whether a text begins with such a character, and how many bytes its first character has.
func isControl(text string) (is bool, size int) {
	c := text[0]
	if c < utf8.RuneSelf {
		return c < ' ' || c == 0x7f, 1
	}
	r, size := utf8.DecodeRuneInString(text)
	return 0x80 <= r && r <= 0x9f || r == 0x2028 || r == 0x2029 || size == 1 && c == 0x85, size
}

// cutControls removes them.
func cutControls(text string) string {
	if !hasControl(text) {
		return text
	}
	kept := make([]byte, 0, len(text))
	for len(text) > 0 {
		is, size := isControl(text)
		if !is {
			kept = append(kept, text[:size]...)
		}
		text = text[size:]
	}
	return string(kept)
}

// fieldHasControl is hasControl for the value of a header field, which may have tabs.
func fieldHasControl(value string) bool { return hasControl(strings.ReplaceAll(value, "\t", " ")) }

// hidesControl reports whether a text has a control character once its escapes are decoded, as often as a server may decode them,
// with what is in overlong UTF-8 decoded or not.
func hidesControl(text string) bool {
	for range maxDecodings {
		if hasControl(text) || hasControl(decodeOverlong(text)) {
			return true
		}
		text = decodeOverlong(text)
		if strings.IndexByte(text, '%') < 0 {
			return false
		}
		text = decodeEscapes(text, true)
	}
	return hasControl(text) || hasControl(decodeOverlong(text))
}

// hidesControl reports whether what routes match has a control character: the path, or a parameter or header field that a route of
// the listener looks at. A host cannot have one (ParseHost).
func (l *listener) hidesControl(r *Request, path Path) bool {
	if path.received != "" && hidesControl(path.received) {
		return true
	}
	for h := range l.hostsOf(r.Host) {
		for name := range h.fields {
			if slices.ContainsFunc(r.Header.Values(name), fieldHasControl) {
				return true
			}
		}
	}
	if len(l.queryNames) == 0 || r.RawQuery == "" {
		return false
	}
	for pair := range strings.SplitSeq(r.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if hidesControl(name) || l.looksAt(pair) && hidesControl(value) {
			return true
		}
	}
	return false
}

// asksMost reports whether the route that was found keeps out whoever a route keeps out that a request for the host may get, whether
// the backends of all of them get the same fields, and whether every such request gets one. What the gateway itself answers is
// known by its path (ReadAlike), but not where a header field or a parameter decides about it.
func (l *listener) asksMost(name string, found *Route) bool {
	takesAll := false
	for h := range l.hostsOf(name) {
		if h.asksUnknown || h.answersSome && found.protection.sends {
			return false
		}
		takesAll = takesAll || h.takesAll
		for _, asked := range h.asks {
			if !found.protection.keepsOut(asked) || found.protection.sends && asked.sends && !found.protection.grantsNoMore(asked) {
				return false
			}
		}
	}
	return takesAll
}

// MayBeMatched reports whether a backend may take a header field for another one that decides about the route of the request.
func (t *Table) MayBeMatched(r *Request, name, folded string) bool {
	for h := range t.listener(r).hostsOf(r.Host) {
		if h.foldedFields[folded] && !h.fields[name] {
			return true
		}
	}
	return false
}
