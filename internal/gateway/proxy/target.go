package proxy

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// wholeServer is the target of an OPTIONS request that is for no path.
const wholeServer = "*"

// splitTarget parts the target of a request: whom it is for where it says so, which is the
// absolute form of HTTP/1.1, and its path, both as they were sent. net/url changes what it
// does not find well spelt.
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

// parsePath returns the path of the request's target. A target that is a server as a whole
// is for the routes of its root (RFC 9112, 3.2.1 and 3.2.4).
func (e *exchange) parsePath() (table.Path, error) {
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

// isMisspelt reports whether a method is one that everybody knows but for the case of its
// letters. To HTTP it is another method; a backend may not think so.
func isMisspelt(method string) bool {
	switch method {
	case http.MethodGet, http.MethodPost: // nearly all
		return false
	}
	switch upper := strings.ToUpper(method); upper {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return upper != method
	}
	return false
}

// mayGoOn counts how far a request may go whose client wants to know the way (RFC 9110,
// 7.6.2), and answers it where this is the end.
func (e *exchange) mayGoOn() bool {
	if e.r.Method != http.MethodOptions && e.r.Method != http.MethodTrace {
		return true
	}
	left, err := strconv.ParseUint(e.r.Header.Get("Max-Forwards"), 10, 31)
	switch {
	case err != nil: // nothing, or nothing that can be counted
		return true
	case left > 0:
		e.r.Header["Max-Forwards"] = []string{strconv.FormatUint(left-1, 10)}
		return true
	case e.r.Method == http.MethodTrace: // an echo would tell what others added on the way
		return e.refuse(http.StatusNotImplemented, "trace")
	}
	e.answer(http.StatusNoContent, "", nil)
	return false
}

// wellFormed reports whether a request of HTTP/2 is what net/http does not ask of it: a
// target that a path is (RFC 9113, 8.3.1), and the length that it says (8.1.1). Neither
// would survive on the way to a backend, but whoever looked at it before may have taken it
// for something else.
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
