package gatewayattack

import (
	"slices"
	"strings"
	"unicode"
)

// pathReading is a way in which a server finds out which of its paths a target means.
type pathReading struct {
	// parameters are cut before escapes are decoded, or after, or not at all.
	cutBefore, cutAfter bool
	// dotsFirst resolves "." and ".." before escapes are decoded, too.
	dotsFirst bool
	// backslash is a slash, merge makes one slash of several.
	backslash, merge bool
	// keepSlash leaves %2F alone.
	keepSlash bool
}

func pathReadings() []pathReading {
	var all []pathReading
	for i := range 1 << 6 {
		bit := func(n int) bool { return i>>n&1 == 1 }
		all = append(all, pathReading{cutBefore: bit(0), cutAfter: bit(1), dotsFirst: bit(2), backslash: bit(3), merge: bit(4), keepSlash: bit(5)})
	}
	return all
}

var allPathReadings = pathReadings()

func (r pathReading) path(target string) string {
	if rest, ok := strings.CutPrefix(target, "http://"); ok { // absolute form
		_, rest, _ = strings.Cut(rest, "/")
		target = "/" + rest
	}
	path, _, _ := strings.Cut(target, "?")
	if r.cutBefore {
		path = cutParameters(path)
	}
	if r.dotsFirst {
		path = resolveDots(path)
	}
	path = unescape(path, r.keepSlash)
	if r.backslash {
		path = strings.ReplaceAll(path, `\`, "/")
	}
	if r.cutAfter {
		path = cutParameters(path)
	}
	if r.merge {
		for strings.Contains(path, "//") {
			path = strings.ReplaceAll(path, "//", "/")
		}
	}
	return resolveDots(path)
}

func cutParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i], _, _ = strings.Cut(segment, ";")
	}
	return strings.Join(segments, "/")
}

func resolveDots(path string) string {
	var out []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		switch segment {
		case ".", "..":
			if segment == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if i == len(segments)-1 {
				out = append(out, "")
			}
		default:
			out = append(out, segment)
		}
	}
	return "/" + strings.Join(out, "/")
}

func unescape(path string, keepSlash bool) string {
	var out strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '%' && i+2 < len(path) {
			high, low := strings.IndexByte(hexDigits, lower(path[i+1])), strings.IndexByte(hexDigits, lower(path[i+2]))
			if c := byte(high<<4 | low); high >= 0 && low >= 0 && (c != '/' || !keepSlash) {
				out.WriteByte(c)
				i += 2
				continue
			}
		}
		out.WriteByte(path[i])
	}
	return out.String()
}

const hexDigits = "0123456789abcdef"

func lower(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

// zones are the protected paths of the gateway that attacks are made against.
var zones = []string{"private", "secret", "other"}

// zonesOf are the protected paths that some server would find in a target.
func zonesOf(target string) []string {
	var found []string
	for _, reading := range allPathReadings {
		first, _, more := strings.Cut(strings.TrimPrefix(reading.path(target), "/"), "/")
		// The end of an expression ($) may be before a line end.
		first = strings.TrimRightFunc(first, unicode.IsControl)
		// The expression of /secret asks for a slash after it.
		if slices.Contains(zones, first) && (first != "secret" || more) && !slices.Contains(found, first) {
			found = append(found, first)
		}
	}
	return found
}
