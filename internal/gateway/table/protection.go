package table

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// protection is what of a route keeps requests from its backends, or changes what they may
// do there. Two routes with equal fields in the spec have the same. A zero field is none.
type protection struct {
	sends     bool   // whether a backend gets the requests
	auth      string // the field auth of the spec
	edit      string // requestHeaders
	cors      string
	rateLimit RateLimit
	bodyBytes int64
}

// newProtection describes the protection of a route by the fields of its spec: the same
// field leads to the same Secret, keys and users.
func newProtection(route *Route, spec *slipwayv1alpha1.Route) protection {
	p := protection{bodyBytes: route.MaxBodyBytes, sends: spec.BackendService != nil || len(spec.Backends) > 0}
	if spec.Auth != nil {
		p.auth = describe(spec.Auth)
	}
	if spec.RequestHeaders != nil {
		p.edit = describe(spec.RequestHeaders)
	}
	if spec.CORS != nil {
		p.cors = describe(spec.CORS)
	}
	if route.RateLimit != nil {
		p.rateLimit = *route.RateLimit
	}
	return p
}

// describe returns the same text for fields that are equal, and only for them.
func describe(field any) string {
	text, err := json.Marshal(field)
	if err != nil { // the types of an API can be written
		return fmt.Sprintf("%+v", field)
	}
	return string(text)
}

// includes reports whether who got past p would have got past other as well, and may do
// no more than other allows.
func (p *protection) includes(other *protection) bool {
	return (other.sends || !p.sends) &&
		(other.auth == "" || other.auth == p.auth) &&
		(other.rateLimit == RateLimit{} || other.rateLimit == p.rateLimit) &&
		(other.bodyBytes == 0 || p.bodyBytes != 0 && p.bodyBytes <= other.bodyBytes) &&
		(p.cors == "" || p.cors == other.cors) &&
		p.edit == other.edit
}

// ReadAlike reports whether the request may go on through the route that Match found for
// it: whichever way a backend reads its path, and a query in it, it comes to a route that asks
// for nothing that this one did not ask for, and not to where no route leads.
func (t *Table) ReadAlike(r *Request, path Path, found *Route) bool {
	if path.received == "" {
		return true
	}
	other := *r
	all := newReadings(t.receiveQuery(r.RawQuery), path.received, path.Forward)
	return all.allHold(func(path, query string) bool {
		other.Path, other.RawQuery = path, query
		return t.asksNoMore(&other, found)
	}) && found.Rewrite.keeps(path)
}

// asksNoMore is ReadAlike for one reading, which is the path of r, and its query.
func (t *Table) asksNoMore(r *Request, found *Route) bool {
	route := t.Match(r)
	switch {
	case route == found:
		return true
	case route != nil && route.Unavailable != nil:
		return false // nobody knows what it would have asked for
	case route == nil, !route.protection.sends && found.protection.sends:
		// No route can be for empty segments, so it says nothing that none is for them. The
		// reading without them is another one.
		return strings.Contains(r.Path, "//")
	default:
		return found.protection.includes(&route.protection)
	}
}

// keeps reports whether a backend that gets the rewritten path stays below the prefix,
// whichever way it reads it.
func (w *Rewrite) keeps(path Path) bool {
	if w == nil || w.prefix == "" || strings.Trim(w.prefix, "/") == "" {
		return true
	}
	return everyReading(func(reading string) bool {
		return slices.ContainsFunc(w.prefixes, func(prefix string) bool { return isBelow(prefix, reading) })
	}, w.Path(path))
}

// isBelow compares segments, without those that are empty.
func isBelow(prefix, path string) bool {
	prefix = strings.TrimSuffix(mergeSlashes(prefix), "/")
	path = mergeSlashes(path)
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
