package table

import (
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Headers is the header of a request. http.Header implements it.
type Headers interface {
	// Values returns all values of a header field. The name is in canonical form.
	Values(name string) []string
}

// Request is the part of a request that routes match.
type Request struct {
	Method string
	// Port is the port of the connection on which the request came in. Secure is set if that
	// connection uses TLS.
	Port   int32
	Secure bool
	// Host is the name from ParseHost. It is empty if the request names no host.
	Host string
	// Path is Path.Match.
	Path string
	// RawQuery is the part after the question mark, as received.
	RawQuery string
	Header   Headers

	work int // of regular expressions: instructions times characters
}

// maxWork bounds the work of regular expressions for a request, of which the client is not known yet. The slowest expressions take
// about a third of a second for it on one core. One of 100 instructions takes a hundredth of it for a value of 5,000 characters.
const maxWork = 50_000_000

// TookTooMuch reports whether routes were left out, because their regular expressions would have been too much work for this request.
// Then nobody knows which route it is for.
func (r *Request) TookTooMuch() bool { return r.work > maxWork }

// matches reports whether a value matches an expression of some size, if the work for it is left.
func (r *Request) matches(expression *regexp.Regexp, size int, value string) bool {
	r.work += size * (len(value) + 1)
	return !r.TookTooMuch() && expression.MatchString(value)
}

// host has the routes of one host name.
type host struct {
	exact       map[string][]*Route
	expressions []pathExpression
	prefixes    node
	stream      *Route // of connections or datagrams

	asks        map[string]*protection // what its routes ask for, by its text
	asksUnknown bool                   // a route cannot be served, so nobody knows what it would ask for
	answersSome bool                   // a route without a backend looks at header fields or parameters
	takesAll    bool                   // a route takes every request
	// fields are the header fields that its routes look at, and foldedFields their folded names.
	fields, foldedFields map[string]bool
}

// pathExpression is a route with a regular expression for its path.
type pathExpression struct {
	expression *regexp.Regexp
	literal    string // the prefix of every matching path
	size       int
	route      *Route
}

// node is a node of the trie of path prefixes, one segment below its parent.
type node struct {
	children map[string]*node
	routes   []*Route
}

// NamesPorts reports whether Match looks at the port of a request.
func (t *Table) NamesPorts() bool { return len(t.ports) > 0 }

// Match returns the route for the request, or nil.
func (t *Table) Match(r *Request) *Route {
	if l := t.listener(r); l != nil {
		return l.match(r)
	}
	return nil
}

// listener returns the listener that gets the request, or nil.
func (t *Table) listener(r *Request) *listener {
	if t.only != nil {
		return t.only
	}
	return t.listenerAmong(r)
}

func (t *Table) listenerAmong(r *Request) *listener {
	at := &t.every
	if len(t.ports) > 0 {
		if named := t.ports[portKey{number: r.Port, secure: r.Secure}]; named != nil {
			at = named
		}
	}
	return at.find(r.Host)
}

// find returns the listener for a name, or nil.
func (p *port) find(name string) *listener {
	if len(p.exact) > 0 {
		if l := p.exact[name]; l != nil {
			return l
		}
	}
	if len(p.wildcard) > 0 {
		for {
			_, parent, found := strings.Cut(name, ".")
			if !found {
				break
			}
			if l := p.wildcard[parent]; l != nil {
				return l
			}
			name = parent
		}
	}
	return p.any
}

// match returns the listener's route for the request, or nil.
func (l *listener) match(r *Request) *Route {
	for h := range l.hostsOf(r.Host) {
		if route := h.find(r); route != nil {
			return route
		}
	}
	return nil
}

// hostsOf are the entries for a name, the best one first: that of the name, those of the wildcards that cover it, the longest first,
// and that of every host.
func (l *listener) hostsOf(name string) iter.Seq[*host] {
	return func(yield func(*host) bool) {
		if h := l.exact[name]; h != nil && !yield(h) {
			return
		}
		for rest, more := name, len(l.wildcard) > 0; more; {
			if _, rest, more = strings.Cut(rest, "."); !more {
				break
			}
			if h := l.wildcard[rest]; h != nil && !yield(h) {
				return
			}
		}
		if l.any != nil {
			yield(l.any)
		}
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
		if strings.HasPrefix(r.Path, e.literal) && r.matches(e.expression, e.size, r.Path) && e.route.match.hold(r) {
			return e.route
		}
	}
	return h.prefixes.find(strings.TrimPrefix(r.Path, "/"), r)
}

// find looks at the routes of the longest prefix first. rest is the path below the node,
// without the leading slash.
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

// predicates are the conditions besides host and path. All must hold.
type predicates struct {
	methods []string
	headers []predicate
	query   []predicate
	cors    bool // the route answers preflight requests
}

// predicate is a condition on a header field or a query parameter.
type predicate struct {
	name       string
	present    bool // any value matches
	value      string
	expression *regexp.Regexp // used instead of value
	size       int
}

func (p *predicates) hold(r *Request) bool {
	if len(p.methods) > 0 && !slices.Contains(p.methods, r.Method) && !p.preflight(r) {
		return false
	}
	for i := range p.headers {
		if !p.headers[i].holdsForAny(r, r.Header.Values(p.headers[i].name)) {
			return false
		}
	}
	for i := range p.query {
		value, found := queryValue(r.RawQuery, p.query[i].name)
		if !found || !p.query[i].holds(r, value) {
			return false
		}
	}
	return true
}

// preflight reports whether the request is a CORS preflight request for one of the methods.
// A preflight request itself has the method OPTIONS.
func (p *predicates) preflight(r *Request) bool {
	if !p.cors || r.Method != http.MethodOptions {
		return false
	}
	asked := r.Header.Values("Access-Control-Request-Method")
	return len(asked) == 1 && slices.Contains(p.methods, asked[0])
}

func (p *predicate) holdsForAny(r *Request, values []string) bool {
	for _, value := range values {
		if p.holds(r, value) {
			return true
		}
	}
	return false
}

func (p *predicate) holds(r *Request, value string) bool {
	switch {
	case p.present:
		return true
	case p.expression != nil:
		return r.matches(p.expression, p.size, value)
	default:
		return value == p.value
	}
}
