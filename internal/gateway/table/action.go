package table

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// Rewrite changes the path and the host of the request to a backend.
type Rewrite struct {
	// Host replaces the Host header. Empty: the header stays.
	Host string
	// FullPath replaces the whole path. PathPrefix replaces the prefix that the rule
	// matches. At most one of them is set.
	FullPath   string
	PathPrefix string

	segments int      // how many segments PathPrefix replaces
	prefixes []string // the ways in which backends may read PathPrefix
}

// Path returns p.Forward, rewritten for the backend.
func (w *Rewrite) Path(p Path) string {
	switch {
	case w.FullPath != "":
		return w.FullPath
	case w.PathPrefix != "":
		return joinPrefix(w.PathPrefix, skipSegments(p.Forward, w.segments))
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

// HeaderEdit changes header fields. In a Route, names are in canonical form.
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

// Decides reports whether the edit sets or removes a field of a request, so that a client cannot say it. The name is folded.
func (e *HeaderEdit) Decides(folded string) bool {
	if e == nil {
		return false
	}
	return slices.ContainsFunc(e.Remove, func(name string) bool { return fieldname.Folded(name) == folded }) ||
		slices.ContainsFunc(e.Set, func(field HeaderField) bool { return fieldname.Folded(field.Name) == folded })
}

// Redirect answers with another URL. What is not set comes from the request.
type Redirect struct {
	// StatusCode is one of 301, 302, 303, 307 and 308.
	StatusCode int
	// Scheme is http or https. Without Port, it takes the port of the request away.
	Scheme string
	Host   string
	Port   int32
	// ListenerPort means that, without Scheme and Port, the port of the connection takes the
	// place of the one in the Host field, which a client may choose.
	ListenerPort bool
	// FullPath replaces the whole path. PathPrefix replaces the prefix that the rule
	// matches. At most one of them is set.
	FullPath   string
	PathPrefix string

	segments int // how many segments PathPrefix replaces
}

// Location returns the URL of the answer. scheme, host (as in the Host header, with or
// without port), the port of the connection (0 if it is unknown), path (escaped) and rawQuery
// come from the request.
func (r *Redirect) Location(scheme, host string, listener int32, path, rawQuery string) string {
	name, port := splitPort(host)
	if r.Host != "" {
		name = r.Host
	}
	switch {
	case r.Port != 0:
		port = strconv.Itoa(int(r.Port))
	case r.Scheme != "":
		port = ""
	case r.ListenerPort && listener != 0:
		port = strconv.Itoa(int(listener))
	}
	if r.Scheme != "" {
		scheme = r.Scheme
	}
	if port != "" && port != wellKnownPort(scheme) {
		name = name + ":" + port
	}
	switch {
	case r.FullPath != "":
		path = r.FullPath
	case r.PathPrefix != "":
		path = joinPrefix(r.PathPrefix, skipSegments(path, r.segments))
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
