package table

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
)

// protection is the part of a route that restricts requests to its backends, or changes
// what they may do there. Rules with equal fields have equal protections. A zero field means
// no restriction.
type protection struct {
	sends   bool   // whether a backend gets the requests
	refuses bool   // whether they get an error, which is how people keep everybody out
	edit    string // RequestHeaders of the rule and its backends
	// settings are the texts of what the rule asks for, by the places of list.Entries.
	settings [list.Count]string
	// text is equal for equal protections.
	text string
}

// newProtection makes the protection of a route from the fields of its rule.
func newProtection(rule *Rule, of feature.Rule) protection {
	p := protection{sends: len(rule.Backends) > 0}
	p.refuses = !p.sends && rule.Direct != nil && rule.Direct.StatusCode >= http.StatusBadRequest
	if rule.RequestHeaders != nil {
		p.edit = feature.Describe(rule.RequestHeaders)
	}
	for i := range rule.Backends {
		if edit := rule.Backends[i].RequestHeaders; edit != nil {
			p.edit += fmt.Sprintf(" %d %s", i, feature.Describe(edit))
		}
	}
	for i := range list.Entries {
		if setting := &list.Entries[i]; setting.Matters() {
			p.settings[i] = setting.Text(&rule.Settings, of)
		}
	}
	p.text = p.describe()
	return p
}

// describe returns equal texts for equal protections. Most routes ask for nothing, so theirs costs nothing.
func (p *protection) describe() string {
	key := "answers"
	switch {
	case p.sends:
		key = "sends"
	case p.refuses:
		key = "refuses"
	}
	if p.edit == "" && p.settings == [list.Count]string{} {
		return key
	}
	return feature.Describe(append([]string{key, p.edit}, p.settings[:]...))
}

// includes reports whether a client that passes p would pass other as well, and may do no
// more than other allows.
func (p *protection) includes(other *protection) bool {
	return (other.sends || !p.sends) && p.keepsOut(other) && p.grantsNoMore(other)
}

// grantsNoMore reports whether a backend of other that gets a request through p would get it with the same header fields, and answer
// pages of no more origins.
func (p *protection) grantsNoMore(other *protection) bool {
	return p.edit == other.edit && p.covers(other, false)
}

// keepsOut reports whether p keeps out everybody and everything that other does.
func (p *protection) keepsOut(other *protection) bool {
	return (!other.refuses || !p.sends) && p.covers(other, true)
}

// covers reports what the settings say of themselves: those that protect something, or the others.
func (p *protection) covers(other *protection, protect bool) bool {
	for i := range p.settings {
		mine, theirs := p.settings[i], other.settings[i]
		if mine != theirs && list.Entries[i].Protects() == protect && !list.Entries[i].Covers(mine, theirs) {
			return false
		}
	}
	return true
}

// ReadAlike reports whether the request may go on through the route that Match found. It
// may if this is safe however a backend reads the path, and a query hidden in it. Each
// reading must lead to a route that requires no more than the found one, and not to a path
// without a route. Only the routes of the listener that gets the request are looked at. With a
// control character, each of those for its host could be meant.
func (t *Table) ReadAlike(r *Request, path Path, found *Route) bool {
	l := t.listener(r)
	if l.hidesControl(r, path) && !l.asksMost(r.Host, found) {
		return false
	}
	if path.received == "" {
		return true
	}
	other := *r
	all := newReadings(l.receiveQuery(r.RawQuery), path.received, path.Forward)
	return all.allHold(func(path, query string) bool {
		other.Path, other.RawQuery = path, query
		return l.asksNoMore(&other, found)
	}) && !other.TookTooMuch() && found.keepsPrefix(path)
}

// ReadsOneWay reports whether every known server reads the path as the gateway does. Only then do two servers that get it agree
// on what it names.
func (p Path) ReadsOneWay() bool {
	return p.received == "" || !hidesControl(p.received) && everyReading(func(reading string) bool { return reading == p.Match }, p.Forward)
}

// keepsPrefix reports whether the path that a backend gets stays below the prefix of its
// rewrite, whichever backend that will be.
func (r *Route) keepsPrefix(path Path) bool {
	return r.Rewrite.keeps(path) && !slices.ContainsFunc(r.Backends, func(b WeightedBackend) bool { return !b.Rewrite.keeps(path) })
}

// asksNoMore is ReadAlike for one reading: the path of r and its query.
func (l *listener) asksNoMore(r *Request, found *Route) bool {
	route := l.match(r)
	switch {
	case route == found:
		return true
	case route != nil && route.Unavailable != nil:
		return false // what it would require is unknown
	case route == nil, !route.protection.sends && found.protection.sends:
		// No route can match empty segments. So it does not matter that no route matches
		// this reading. The reading without empty segments is checked too.
		return strings.Contains(r.Path, "//")
	default:
		return found.protection.includes(&route.protection)
	}
}

// keeps reports whether the rewritten path stays below the prefix, however a backend reads
// it.
func (w *CompiledRewrite) keeps(path Path) bool {
	if w == nil || strings.Trim(w.PathPrefix, "/") == "" {
		return true
	}
	return !hidesControl(path.received) && everyReading(func(reading string) bool {
		return slices.ContainsFunc(w.prefixes, func(prefix string) bool { return isBelow(prefix, reading) })
	}, w.Path(path))
}

// isBelow compares segments, ignoring empty ones.
func isBelow(prefix, path string) bool {
	prefix = strings.TrimSuffix(mergeSlashes(prefix), "/")
	path = mergeSlashes(path)
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
