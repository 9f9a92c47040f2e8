package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// wholeServer is the target of an OPTIONS request for the whole server.
const wholeServer = "*"

// splitTarget splits the target of a request. authority is set for the absolute form of
// HTTP/1.1. Both parts stay as they were sent, whereas net/url normalizes them.
func splitTarget(target string) (authority, path string, absolute bool) {
	path = target
	if !strings.HasPrefix(target, "/") {
		for _, scheme := range [...]string{"http://", "https://"} {
			if len(target) >= len(scheme) && strings.EqualFold(target[:len(scheme)], scheme) {
				path, absolute = target[len(scheme):], true
			}
		}
	}
	if absolute {
		end := strings.IndexAny(path, "/?#")
		if end < 0 {
			end = len(path)
		}
		authority, path = path[:end], path[end:]
	}
	path, _, _ = strings.Cut(path, "?")
	return authority, path, absolute
}

// parsePath returns the path of the request's target. A target for the whole server gets
// the path /, so routes of the root match it (RFC 9112, 3.2.1 and 3.2.4).
func (e *call) parsePath() (table.Path, error) {
	_, path, absolute := splitTarget(e.r.RequestURI)
	switch {
	case e.r.Method == http.MethodOptions && (path == wholeServer || (path == "" && absolute)):
		root, err := table.ParsePath("/")
		root.Forward = wholeServer
		return root, err
	case path == "" && absolute:
		path = "/"
	}
	return table.ParsePath(path)
}

// isMisspelt reports whether a method is a standard one in the wrong case. In HTTP it is a
// different method, but a backend may accept it as the standard one.
func isMisspelt(method string) bool {
	switch method {
	case http.MethodGet, http.MethodPost: // the most frequent ones
		return false
	}
	switch upper := strings.ToUpper(method); upper {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return upper != method
	}
	return false
}

// mayGoOn decrements Max-Forwards (RFC 9110, 7.6.2). If it is 0, it answers the request and
// returns false.
func (e *call) mayGoOn() bool {
	if e.r.Method != http.MethodOptions && e.r.Method != http.MethodTrace {
		return true
	}
	left, err := strconv.ParseUint(e.r.Header.Get("Max-Forwards"), 10, 31)
	switch {
	case err != nil: // missing or not a number
		return true
	case left > 0:
		e.r.Header["Max-Forwards"] = []string{strconv.FormatUint(left-1, 10)}
		return true
	case e.r.Method == http.MethodTrace: // an echo would reveal fields that proxies have added
		return e.Refuse(http.StatusNotImplemented, "trace")
	}
	e.AnswerWith(http.StatusNoContent, "", nil)
	return false
}

// wellFormed checks two rules for HTTP/2 requests that net/http does not check: the target
// must be a path (RFC 9113, 8.3.1), and the declared length must be right (8.1.1). The
// backend would not see such a target or length. But a proxy in front may have read the
// request in another way.
func wellFormed(r *http.Request) bool {
	if r.RequestURI == "" || (r.RequestURI[0] != '/' && r.RequestURI != wholeServer) || strings.IndexByte(r.RequestURI, ' ') >= 0 {
		return r.Method == http.MethodConnect
	}
	for _, length := range r.Header["Content-Length"] {
		if said, err := strconv.ParseUint(length, 10, 63); err != nil || int64(said) != r.ContentLength {
			return false
		}
	}
	return true
}
