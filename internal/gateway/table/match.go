package table

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Headers are the headers of a request; http.Header is one.
type Headers interface {
	// Values returns all values of a header. The name is in canonical form.
	Values(name string) []string
}

// Request is what a request is matched by.
type Request struct {
	Method string
	// Host is the name that ParseHost has read; empty where the request names no host.
	Host string
	// Path is Path.Match.
	Path string
	// RawQuery is what follows the question mark, as received.
	RawQuery string
	Header   Headers
}

// host is what is known of one host name.
type host struct {
	exact       map[string][]*Route
	expressions []pathExpression
	prefixes    node
}

// pathExpression is a route that is found by a regular expression.
type pathExpression struct {
	expression *regexp.Regexp
	literal    string // what every path that matches begins with
	route      *Route
}

// node is a place in the trie of path prefixes, one segment below its parent.
type node struct {
	children map[string]*node
	routes   []*Route
}

// Match returns the route that is to answer the request, or nil.
func (t *Table) Match(r *Request) *Route {
	name := r.Host
	if h := t.exact[name]; h != nil {
		if route := h.find(r); route != nil {
			return route
		}
	}
	if len(t.wildcard) > 0 {
		if route := t.findWildcard(name, r); route != nil {
			return route
		}
	}
	if t.any != nil {
		return t.any.find(r)
	}
	return nil
}

// findWildcard asks the wildcards that cover the name, the longest first.
func (t *Table) findWildcard(name string, r *Request) *Route {
	for {
		_, parent, found := strings.Cut(name, ".")
		if !found {
			return nil
		}
		if h := t.wildcard[parent]; h != nil {
			if route := h.find(r); route != nil {
				return route
			}
		}
		name = parent
	}
}

func (h *host) find(r *Request) *Route {
	if len(h.exact) > 0 {
		if route := first(h.exact[r.Path], r); route != nil {
			return route
		}
	}
	for i := range h.expressions {
		e := &h.expressions[i]
		if strings.HasPrefix(r.Path, e.literal) && e.expression.MatchString(r.Path) && e.route.match.hold(r) {
			return e.route
		}
	}
	return h.prefixes.find(strings.TrimPrefix(r.Path, "/"), r)
}

// find asks the routes of the longest prefix first. rest is the path below the node,
// without the slash in front.
func (n *node) find(rest string, r *Request) *Route {
	if len(n.children) > 0 && rest != "" {
		segment, below, _ := strings.Cut(rest, "/")
		if child := n.children[segment]; child != nil {
			if route := child.find(below, r); route != nil {
				return route
			}
		}
	}
	return first(n.routes, r)
}

// first returns the first route whose predicates hold.
func first(routes []*Route, r *Request) *Route {
	for _, route := range routes {
		if route.match.hold(r) {
			return route
		}
	}
	return nil
}

// predicates are what a request must fulfil besides host and path. All must hold.
type predicates struct {
	methods []string
	headers []predicate
	query   []predicate
	cors    bool // the route answers preflight requests
}

// predicate is about the value of a header or a query parameter.
type predicate struct {
	name       string
	present    bool // any value will do
	value      string
	expression *regexp.Regexp // in place of value
}

func (p *predicates) hold(r *Request) bool {
	if len(p.methods) > 0 && !slices.Contains(p.methods, r.Method) && !p.preflight(r) {
		return false
	}
	for i := range p.headers {
		if !p.headers[i].holdsForAny(r.Header.Values(p.headers[i].name)) {
			return false
		}
	}
	for i := range p.query {
		value, found := queryValue(r.RawQuery, p.query[i].name)
		if !found || !p.query[i].holds(value) {
			return false
		}
	}
	return true
}

// preflight tells whether a browser asks for permission to use one of the methods. The
// question has a method of its own.
func (p *predicates) preflight(r *Request) bool {
	if !p.cors || r.Method != http.MethodOptions {
		return false
	}
	asked := r.Header.Values("Access-Control-Request-Method")
	return len(asked) == 1 && slices.Contains(p.methods, asked[0])
}

func (p *predicate) holdsForAny(values []string) bool {
	for _, value := range values {
		if p.holds(value) {
			return true
		}
	}
	return false
}

func (p *predicate) holds(value string) bool {
	switch {
	case p.present:
		return true
	case p.expression != nil:
		return p.expression.MatchString(value)
	default:
		return value == p.value
	}
}
