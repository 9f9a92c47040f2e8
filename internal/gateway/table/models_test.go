package table_test

import (
	"net/url"
	"path"
	"strings"
)

// reader tells how a server reads the path of a request. It is written after the server's
// documentation and source code, and uses no code of the gateway. It returns false if the
// server refuses the path.
type reader struct {
	name string
	read func(target string) (string, bool)
}

var models = []reader{
	{"Tomcat", func(target string) (string, bool) { return tomcat(target, true, false) }},
	{"Tomcat that decodes %2F", func(target string) (string, bool) { return tomcat(target, false, false) }},
	{"Tomcat with backslashes", func(target string) (string, bool) { return tomcat(target, false, true) }},
	{"Jetty", func(target string) (string, bool) { return jetty(target, false) }},
	{"Jetty that compacts", func(target string) (string, bool) { return jetty(target, true) }},
	{"Undertow", undertow},
	{"Spring's matrix parameters", spring},
	{"Shiro", shiro},
	{"nginx", func(target string) (string, bool) { return nginx(target, true) }},
	{"nginx that keeps slashes", func(target string) (string, bool) { return nginx(target, false) }},
	{"httpd that decodes %2F", func(target string) (string, bool) { return httpd(target, true, true) }},
	{"httpd that keeps %2F", func(target string) (string, bool) { return httpd(target, false, true) }},
	{"httpd that keeps slashes", func(target string) (string, bool) { return httpd(target, true, false) }},
	{"Express", express},
	{"Node's URL", func(target string) (string, bool) { return whatwg(target, false) }},
	{"Node's URL, decoded", func(target string) (string, bool) { return whatwg(target, true) }},
	{"files of Node", nodeFiles},
	{"Go's ServeMux", serveMux},
	{"Go's ServeMux by segment", serveMuxSegments},
	{"IIS", func(target string) (string, bool) { return iis(target, false) }},
	{"IIS that decodes twice", func(target string) (string, bool) { return iis(target, true) }},
	{"two servers, one behind the other", twice},
	{"dots before escapes", dotsFirst},
	{"a string that ends at a zero byte", zeroEnded},
	{"UTF-8 that may be too long", overlongUTF8},
	{"IIS with its own escapes behind another server", wideEscapes},
}

// percent decodes escapes. keep tells which bytes stay escaped.
func percent(text string, keep func(c byte) bool) (string, bool) {
	out := &strings.Builder{}
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", false
		}
		high := strings.IndexByte("0123456789abcdef", text[i+1]|0x20)
		low := strings.IndexByte("0123456789abcdef", text[i+2]|0x20)
		if high < 0 || low < 0 {
			return "", false
		}
		c := byte(high*16 + low)
		if keep != nil && keep(c) {
			out.WriteString("%" + strings.ToUpper(text[i+1:i+3]))
		} else {
			out.WriteByte(c)
		}
		i += 2
	}
	return out.String(), true
}

func slash(c byte) bool { return c == '/' }

// parameters removes what follows a semicolon in each segment, as servlet containers do.
func parameters(text string) string {
	for {
		at := strings.IndexByte(text, ';')
		if at < 0 {
			return text
		}
		end := strings.IndexByte(text[at:], '/')
		if end < 0 {
			return text[:at]
		}
		text = text[:at] + text[at+end:]
	}
}

func merged(text string) string {
	for strings.Contains(text, "//") {
		text = strings.ReplaceAll(text, "//", "/")
	}
	return text
}

// undotted resolves "." and "..". With strict, a path above the root is refused.
func undotted(text string, strict bool) (string, bool) {
	if strings.HasSuffix(text, "/.") || strings.HasSuffix(text, "/..") {
		text += "/"
	}
	for {
		at := strings.Index(text, "/./")
		if at < 0 {
			break
		}
		text = text[:at] + text[at+2:]
	}
	for {
		at := strings.Index(text, "/../")
		switch {
		case at < 0:
			return text, true
		case at == 0 && strict:
			return "", false
		case at == 0:
			text = text[3:]
		default:
			text = text[:strings.LastIndexByte(text[:at], '/')] + text[at+3:]
		}
	}
}

// tomcat is CoyoteAdapter: first parameters, then escapes, then normalize.
func tomcat(target string, refuseSlash, backslash bool) (string, bool) {
	text := parameters(target)
	if refuseSlash && strings.Contains(strings.ToLower(text), "%2f") {
		return "", false
	}
	text, ok := percent(text, nil)
	if !ok || strings.ContainsAny(text, "\x00") {
		return "", false
	}
	if backslash {
		text = strings.ReplaceAll(text, `\`, "/")
	} else if strings.Contains(text, `\`) {
		return "", false
	}
	return undotted(merged(text), true)
}

// jetty is URIUtil.decodePath and canonicalPath of Jetty 9.4. It refuses ".." above the
// root. An empty segment counts as a segment.
func jetty(target string, compact bool) (string, bool) {
	text, ok := percent(parameters(target), nil)
	if !ok {
		return "", false
	}
	if text, ok = undotted(text, true); ok && compact {
		text = merged(text)
	}
	return text, ok
}

// undertow removes what follows an unescaped semicolon, decodes, and makes the path
// canonical.
func undertow(target string) (string, bool) {
	text, ok := percent(parameters(target), slash)
	if !ok {
		return "", false
	}
	return undotted(merged(strings.ReplaceAll(text, `\`, "/")), false)
}

// spring is UrlPathHelper behind a server that does not change the path.
func spring(target string) (string, bool) {
	text, ok := percent(parameters(target), nil)
	if !ok {
		return "", false
	}
	return undotted(merged(parameters(text)), false)
}

// shiro decodes, then cuts the path at the first semicolon.
func shiro(target string) (string, bool) {
	text, ok := percent(target, nil)
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(text, ";")
	return undotted(merged(strings.ReplaceAll(text, `\`, "/")), false)
}

// nginx is ngx_http_parse_complex_uri: it reads decoded characters like others, and handles
// dots and slashes at the same time.
func nginx(target string, merge bool) (string, bool) {
	text, ok := percent(target, nil)
	if !ok || strings.Contains(text, "\x00") {
		return "", false
	}
	out := []string{}
	segments := strings.Split(text[1:], "/")
	for i, segment := range segments {
		final := i == len(segments)-1
		switch {
		case segment == "." || segment == "" && merge:
		case segment == "..":
			if len(out) == 0 {
				return "", false
			}
			out = out[:len(out)-1]
		default:
			out = append(out, segment)
			continue
		}
		if final {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/"), true
}

// httpd is ap_normalize_path, then decoding, then ap_normalize_path again.
func httpd(target string, decodeSlash, merge bool) (string, bool) {
	normalize := func(text string) (string, bool) {
		if merge {
			text = merged(text)
		}
		return undotted(text, true)
	}
	text, ok := percent(target, func(c byte) bool { return !strings.ContainsRune("-._~", rune(c)) && !isAlphanumeric(c) })
	if !ok {
		return "", false
	}
	if text, ok = normalize(text); !ok {
		return "", false
	}
	keep := slash
	if decodeSlash {
		keep = nil
	}
	text, ok = percent(text, keep)
	if !ok || strings.Contains(text, "\x00") {
		return "", false
	}
	return normalize(text)
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// express compares segments, each decoded separately. It does not resolve dots and slashes.
func express(target string) (string, bool) {
	segments := strings.Split(target, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return "", false
		}
		segments[i] = strings.ReplaceAll(decoded, "/", "%2F")
	}
	return strings.Join(segments, "/"), true
}

// whatwg is new URL(target, base).pathname.
func whatwg(target string, decode bool) (string, bool) {
	text := strings.ReplaceAll(target, `\`, "/")
	if strings.HasPrefix(text, "//") {
		_, rest, _ := strings.Cut(strings.TrimLeft(text, "/"), "/")
		text = "/" + rest
	}
	segments := strings.Split(text, "/")
	for i, segment := range segments {
		if dots := strings.ReplaceAll(strings.ToLower(segment), "%2e", "."); dots == "." || dots == ".." {
			segments[i] = dots
		}
	}
	text, _ = undotted(strings.Join(segments, "/"), false)
	if decode {
		return percent(text, nil)
	}
	return percent(text, slash)
}

// nodeFiles is how the packages send and serve-static find a file.
func nodeFiles(target string) (string, bool) {
	text, ok := percent(target, nil)
	if !ok || strings.Contains(text, "\x00") {
		return "", false
	}
	for _, part := range strings.Split(text, "/") {
		if part == ".." {
			return "", false
		}
	}
	return undotted(merged(text), false)
}

// serveMux is a handler that uses the path after ServeMux has cleaned it.
func serveMux(target string) (string, bool) {
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		return "", false
	}
	clean := path.Clean(parsed.Path)
	if strings.HasSuffix(parsed.Path, "/") && clean != "/" {
		clean += "/"
	}
	return clean, true
}

// serveMuxSegments is how ServeMux matches patterns with wildcards.
func serveMuxSegments(target string) (string, bool) {
	parsed, err := url.ParseRequestURI(target)
	if err != nil || parsed.Path != path.Clean(parsed.Path) {
		return "", false
	}
	return express(parsed.EscapedPath())
}

// iis treats a backslash as a slash. It decodes twice if it is configured to.
func iis(target string, decodeTwice bool) (string, bool) {
	text, ok := percent(target, nil)
	if ok && decodeTwice {
		text, ok = percent(text, nil)
	}
	if !ok || strings.Contains(text, "\x00") {
		return "", false
	}
	return undotted(merged(strings.ReplaceAll(text, `\`, "/")), false)
}

// twice is an nginx that forwards the decoded path to a Tomcat.
func twice(target string) (string, bool) {
	text, ok := nginx(target, true)
	if !ok {
		return "", false
	}
	return tomcat(text, false, false)
}

// dotsFirst resolves the dots that are not escaped, then decodes the rest.
func dotsFirst(target string) (string, bool) {
	text, ok := undotted(merged(target), false)
	if !ok {
		return "", false
	}
	return percent(text, nil)
}

// zeroEnded is a server that passes the path, decoded twice, to a C library.
func zeroEnded(target string) (string, bool) {
	text, ok := percent(strings.ReplaceAll(target, "%2500", "%00"), nil)
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(text, "\x00")
	return undotted(merged(text), false)
}

// overlongUTF8 decodes as servers did before RFC 3629.
func overlongUTF8(target string) (string, bool) {
	text, ok := percent(target, nil)
	if !ok {
		return "", false
	}
	for long, short := range map[string]string{
		"\xc0\xaf": "/", "\xc0\xae": ".", "\xe0\x80\xaf": "/", "\xe0\x80\xae": ".", "\xc1\x9c": `\`, "\xf0\x80\x80\xaf": "/", "\xc0\xbb": ";",
	} {
		text = strings.ReplaceAll(text, long, short)
	}
	return undotted(merged(parameters(text)), false)
}

// wideEscapes decodes escapes, and then those that only IIS knows.
func wideEscapes(target string) (string, bool) {
	text, ok := percent(target, nil)
	if !ok {
		return "", false
	}
	for escape, short := range map[string]string{"%u002f": "/", "%u002e": ".", "%u005c": `\`, "%u000a": "\n"} {
		text = strings.ReplaceAll(text, escape, short)
	}
	return undotted(merged(strings.ReplaceAll(text, `\`, "/")), false)
}
