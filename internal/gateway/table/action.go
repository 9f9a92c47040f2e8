package table

import (
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// CompiledRewrite is a Rewrite of a route.
type CompiledRewrite struct {
	model.Rewrite

	segments int      // how many segments PathPrefix replaces
	prefixes []string // the ways in which backends may read PathPrefix
}

// Path returns p.Forward, rewritten for the backend.
func (w *CompiledRewrite) Path(p Path) string {
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

// CompiledRedirect is a Redirect of a route.
type CompiledRedirect struct {
	model.Redirect

	segments int // how many segments PathPrefix replaces
}

// Location returns the URL of the answer. scheme, host (as in the Host header, with or
// without port), the port of the connection (0 if it is unknown), path (escaped) and rawQuery
// come from the request.
func (r *CompiledRedirect) Location(scheme, host string, listener int32, path, rawQuery string) string {
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
