package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Compile makes a table, and returns the problems of routes that cannot be served as the
// spec says. It never fails as a whole. Problems of policies come first, then those of
// routes, then those of health checks, each in the order of the spec. The first problem of
// a route is the one to report.
func Compile(in Input) (*Table, []Problem) {
	c := &compiler{in: in, names: map[string]bool{}, backends: map[string]*Backend{}, policies: map[string]policy{}}
	for i := range in.BackendPolicies {
		c.policy(i)
	}
	for i := range in.Routes {
		c.declaredName(i)
	}
	for i := range in.Routes {
		c.route(i)
	}
	for i := range in.HealthChecks {
		c.healthCheck(i)
	}
	return c.table(), c.problems
}

// compiler is the state while the routes are compiled one after another.
type compiler struct {
	in       Input
	names    map[string]bool // names in use
	owners   []int           // routes that keep their declared name
	compiled []compiled
	backends map[string]*Backend
	policies map[string]policy // by the ID of the backend
	problems []Problem
}

// compiled is a route with the data that decides its place in the table.
type compiled struct {
	*Route
	host     string
	pathType slipwayv1alpha1.PathType
	path     matcher
}

// fault is a reason and a message. It becomes a Problem.
type fault struct{ reason, message string }

func invalid(format string, args ...any) *fault {
	return &fault{slipwayv1alpha1.ReasonInvalidRoute, fmt.Sprintf(format, args...)}
}

// route compiles one route. A route with an invalid match is left out. A route with an
// invalid action becomes unavailable.
func (c *compiler) route(index int) {
	spec := &c.in.Routes[index]
	route := &Route{Name: c.name(index), Index: index}
	report := func(f *fault) *Problem {
		p := Problem{Index: index, Route: route.Name, Reason: f.reason, Message: f.message}
		c.problems = append(c.problems, p)
		return &p
	}
	if spec.Name != "" && route.Name != spec.Name {
		report(&fault{slipwayv1alpha1.ReasonDuplicateName, fmt.Sprintf("name: an earlier route is called %q; this one is called %q", spec.Name, route.Name)})
	}
	entry := compiled{Route: route}
	if f := entry.compileMatch(spec); f != nil {
		report(f)
		return
	}
	if field, unknown := c.in.Unknown[index]; unknown {
		route.Unavailable = report(&fault{slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("%s: this version of the gateway does not know the field", field)})
	} else if f := c.compileActions(&entry, spec); f != nil {
		route.Unavailable = report(f)
	} else {
		for _, f := range c.compileBackends(route, spec) {
			report(f)
		}
	}
	c.compiled = append(c.compiled, entry)
}

// declaredName reserves a route's declared name for the first route that has it. This
// happens before names are generated for other routes.
func (c *compiler) declaredName(index int) {
	if name := c.in.Routes[index].Name; name != "" && !c.names[name] {
		c.names[name] = true
		c.owners = append(c.owners, index)
	}
}

// name returns a name that no other route has.
func (c *compiler) name(index int) string {
	spec := &c.in.Routes[index]
	name := spec.Name
	if name == "" {
		name = string(spec.Host) + orDefault(spec.Path, "/")
	} else if _, owner := slices.BinarySearch(c.owners, index); owner {
		return name
	}
	unique := name
	for n := 2; c.names[unique]; n++ {
		unique = fmt.Sprintf("%s#%d", name, n)
	}
	c.names[unique] = true
	return unique
}

// table puts the compiled routes into a table.
func (c *compiler) table() *Table {
	t := &Table{exact: map[string]*host{}, wildcard: map[string]*host{}, queryNames: map[string]bool{}}
	for _, id := range slices.Sorted(maps.Keys(c.backends)) {
		c.backends[id].Index = len(t.Backends)
		t.Backends = append(t.Backends, c.backends[id])
	}
	for _, entry := range c.compiled {
		t.Routes = append(t.Routes, entry.Route)
		for _, p := range entry.match.query {
			t.queryNames[p.name] = true
		}
	}
	slices.SortStableFunc(c.compiled, precedence)
	for _, entry := range c.compiled {
		t.host(entry.host).add(entry)
	}
	return t
}

// precedence orders the routes of a host. Routes with the same type of path are ordered by
// the length of the path, then by their other conditions. Equal routes keep the order of
// the spec.
func precedence(a, b compiled) int {
	return cmp.Or(
		-cmp.Compare(a.path.length, b.path.length),
		-cmp.Compare(min(len(a.match.methods), 1), min(len(b.match.methods), 1)),
		-cmp.Compare(len(a.match.headers), len(b.match.headers)),
		-cmp.Compare(len(a.match.query), len(b.match.query)),
	)
}

// host returns the entry of a host name. It creates the entry if there is none.
func (t *Table) host(name string) *host {
	if name == "" {
		if t.any == nil {
			t.any = &host{}
		}
		return t.any
	}
	hosts := t.exact
	if parent, wildcard := strings.CutPrefix(name, "*."); wildcard {
		hosts, name = t.wildcard, parent
	}
	if hosts[name] == nil {
		hosts[name] = &host{}
	}
	return hosts[name]
}

// add puts a route behind the routes that are there.
func (h *host) add(entry compiled) {
	switch entry.pathType {
	case slipwayv1alpha1.PathExact:
		if h.exact == nil {
			h.exact = map[string][]*Route{}
		}
		h.exact[entry.path.text] = append(h.exact[entry.path.text], entry.Route)
	case slipwayv1alpha1.PathRegularExpression:
		h.expressions = append(h.expressions, pathExpression{entry.path.expression, entry.path.literal, entry.Route})
	default:
		at := &h.prefixes
		for _, segment := range entry.path.segments() {
			if at.children == nil {
				at.children = map[string]*node{}
			}
			if at.children[segment] == nil {
				at.children[segment] = &node{}
			}
			at = at.children[segment]
		}
		at.routes = append(at.routes, entry.Route)
	}
}

// orDefault returns the value, or the default where it is zero.
func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
