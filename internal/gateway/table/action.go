package table

import (
	"net/http"
	"strconv"
	"strings"
)

// Rewrite changes the path and the host of the request to a backend.
type Rewrite struct {
	// Host replaces the Host header. Empty: the header stays.
	Host string

	path     string   // replaces the whole path
	prefix   string   // replaces the first segments
	segments int      // how many segments prefix replaces
	prefixes []string // the ways in which backends may read prefix
}

// Path returns p.Forward, rewritten for the backend.
func (w *Rewrite) Path(p Path) string {
	switch {
	case w.path != "":
		return w.path
	case w.prefix != "":
		return joinPrefix(w.prefix, skipSegments(p.Forward, w.segments))
	default:
		return p.Forward
	}
}

// joinPrefix puts a prefix before the rest of a path. rest is empty or begins with a slash.
func joinPrefix(prefix, rest string) string {
	if rest == "" {
		return prefix
	}
	return strings.TrimSuffix(prefix, "/") + rest
}

// skipSegments returns what follows the first n non-empty segments.
func skipSegments(path string, n int) string {
	for range n {
		path = strings.TrimLeft(path, "/")
		end := strings.IndexByte(path, '/')
		if end < 0 {
			return ""
		}
		path = path[end:]
	}
	return path
}

// HeaderEdit changes header fields. Names are in canonical form.
type HeaderEdit struct {
	Remove []string
	Set    []HeaderField
	Add    []HeaderField
}

// HeaderField is a header field with its value.
type HeaderField struct {
	Name  string
	Value string
}

// Apply changes the header: first Remove, then Set, then Add.
func (e *HeaderEdit) Apply(headers http.Header) {
	for _, name := range e.Remove {
		delete(headers, name)
	}
	for _, field := range e.Set {
		headers[field.Name] = []string{field.Value}
	}
	for _, field := range e.Add {
		headers[field.Name] = append(headers[field.Name], field.Value)
	}
}

// Redirect answers with another URL.
type Redirect struct {
	StatusCode int

	scheme string
	host   string
	port   int32
	path   string
}

// Location returns the URL of the answer. scheme, host (as in the Host header, with or
// without port), path (escaped) and rawQuery come from the request.
func (r *Redirect) Location(scheme, host, path, rawQuery string) string {
	name, port := splitPort(host)
	if r.host != "" {
		name = r.host
	}
	switch {
	case r.port != 0:
		port = strconv.Itoa(int(r.port))
	case r.scheme != "":
		port = ""
	}
	if r.scheme != "" {
		scheme = r.scheme
	}
	if port != "" && port != wellKnownPort(scheme) {
		name = name + ":" + port
	}
	if r.path != "" {
		path = r.path
	}
	location := scheme + "://" + name + path
	if rawQuery != "" {
		location += "?" + rawQuery
	}
	return location
}

func wellKnownPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// splitPort splits a Host header. An IPv6 address keeps its brackets.
func splitPort(host string) (name, port string) {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.IndexByte(host[colon:], ']') >= 0 {
		return host, ""
	}
	return host[:colon], host[colon+1:]
}

// CORS defines what pages of other origins may do. The lists are joined already, ready to
// be sent.
type CORS struct {
	AllowMethods     string
	AllowHeaders     string
	ExposeHeaders    string
	AllowCredentials bool
	// MaxAge is in seconds.
	MaxAge string

	any       bool
	origins   map[string]bool
	wildcards []originWildcard
}

// originWildcard is a pattern such as https://*.example.com:8443, split at the asterisk.
type originWildcard struct{ scheme, rest string }

// AllowOrigin returns the value of Access-Control-Allow-Origin for an origin. It returns
// false if the origin is not allowed.
func (c *CORS) AllowOrigin(origin string) (string, bool) {
	if c.any {
		return "*", true
	}
	origin = strings.ToLower(origin)
	if c.origins[origin] {
		return origin, true
	}
	for _, w := range c.wildcards {
		below, isScheme := strings.CutPrefix(origin, w.scheme)
		label, isBelow := strings.CutSuffix(below, w.rest)
		if isScheme && isBelow && label != "" && !strings.ContainsAny(label, "/:@") {
			return origin, true
		}
	}
	return "", false
}
