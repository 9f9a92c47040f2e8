package table

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Compile makes a table, and returns the problems of what cannot be served as written. It
// never fails as a whole. Problems of listeners come first, then those of settings, then
// those of rules, each in their order. The first problem of a rule is the one to report.
func Compile(in Input) (*Table, []model.Problem) {
	c, t := compile(in)
	c.checkReturns()
	return t, c.problems
}

func compile(in Input) (*compiler, *Table) {
	c := &compiler{
		in: in, backends: map[model.BackendName]*model.Backend{}, settings: map[model.BackendName]model.Settings{},
		compiled: make([]compiled, 0, len(in.Rules)), texts: newTexts(),
	}
	// Where log-ins end is found out with the table.
	c.texts.checks = in.CheckOnly && !slices.ContainsFunc(in.Rules, func(rule Rule) bool { return rule.Auth != nil && rule.Auth.OIDC != nil })
	c.checkListeners()
	c.checkSettings()
	for i := range in.Rules {
		c.rule(&in.Rules[i])
	}
	return c, c.table()
}

// compiler is the state while the rules are compiled one after another.
type compiler struct {
	in        Input
	listeners []*listener // by the index in the input; nil for an invalid one
	valid     []*listener // without the invalid ones
	settings  map[model.BackendName]model.Settings
	compiled  []compiled
	backends  map[model.BackendName]*model.Backend
	problems  []model.Problem
	texts     *texts
}

// compiled is a route with the data that decides its place in the table.
type compiled struct {
	*Route

	listeners []int // nil: all
	host      string
	pathType  PathType
	path      matcher
	rank      int
	edits     []backendEdits // of Rule.Backends
	texts     *texts
	asks      *auth.Policy // of the rule, also if it cannot be served
}

// backendEdits change the requests that one backend gets.
type backendEdits struct {
	rewrite           *CompiledRewrite
	request, response *model.HeaderEdit
}

// checkSettings keeps the valid settings. Invalid limits and health checks are ignored, because
// the results of a wrong check could keep requests away from healthy endpoints. Protocol and TLS
// stay: without them, requests would be sent in another way than was meant.
func (c *compiler) checkSettings() {
	byText := func(a, b model.BackendName) int { return cmp.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(c.in.Settings), byText) {
		settings, wrong := c.in.Settings[name], ""
		if settings.Limits != nil {
			wrong = settings.Limits.Wrong()
		}
		if settings.HealthCheck != nil && wrong == "" {
			wrong = c.texts.HealthCheck(settings.HealthCheck)
		}
		if wrong != "" {
			c.problems = append(c.problems, model.Problem{Index: -1, List: "settings", Route: name.String(), Reason: model.ReasonInvalid, Message: wrong})
			settings.Limits, settings.HealthCheck = nil, nil
		}
		c.settings[name] = settings
	}
}

// rule compiles one rule. A rule with an invalid match is left out. A rule with an invalid
// action becomes an unavailable route.
func (c *compiler) rule(rule *Rule) {
	route := &Route{Name: rule.Name, Index: rule.Index, Place: len(c.compiled), Transport: rule.Transport}
	report := func(f *model.Fault) *model.Problem {
		p := model.Problem{Index: rule.Index, Route: rule.Name, Reason: f.Reason, Message: f.Message}
		c.problems = append(c.problems, p)
		return &p
	}
	entry := compiled{Route: route, listeners: rule.Listeners, rank: rule.Rank, asks: rule.Auth, texts: c.texts}
	if f := c.compileMatch(&entry, rule); f != nil {
		report(f)
		return
	}
	if f := compileActions(&entry, rule); f != nil {
		route.Unavailable = report(f)
	} else {
		for _, f := range c.compileBackends(&entry, rule) {
			report(f)
		}
	}
	c.compiled = append(c.compiled, entry)
}

// table puts the compiled routes into a table.
func (c *compiler) table() *Table {
	t := &Table{Routes: make([]*Route, 0, len(c.compiled))}
	for _, b := range slices.SortedFunc(maps.Values(c.backends), func(a, b *model.Backend) int { return cmp.Compare(a.ID, b.ID) }) {
		b.Index = len(t.Backends)
		t.Backends = append(t.Backends, b)
	}
	for _, entry := range c.compiled {
		t.Routes = append(t.Routes, entry.Route)
	}
	slices.SortStableFunc(c.compiled, precedence)
	for _, entry := range c.compiled {
		for _, l := range c.listenersOf(entry) {
			l.add(entry)
		}
	}
	c.openPorts(t)
	return t
}

// listenersOf returns the listeners that have a route.
func (c *compiler) listenersOf(entry compiled) []*listener {
	var list []*listener
	if entry.listeners == nil {
		for _, l := range c.valid {
			if l.transport == entry.Transport {
				list = append(list, l)
			}
		}
		return list
	}
	for _, index := range entry.listeners {
		// A rule for HTTP is nothing for connections that are not read, and the other way round.
		if l := c.listeners[index]; l != nil && l.transport == entry.Transport && !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// precedence orders the routes of a host. Routes with the same type of path are ordered by
// their rank, then by the length of the path, then by their other conditions. Only regular
// expressions of different lengths are ever compared: the trie separates prefixes. Equal
// routes keep the order of the rules.
func precedence(a, b compiled) int {
	return cmp.Or(
		-cmp.Compare(a.rank, b.rank),
		-cmp.Compare(a.path.length, b.path.length),
		-cmp.Compare(min(len(a.match.methods), 1), min(len(b.match.methods), 1)),
		-cmp.Compare(len(a.match.headers), len(b.match.headers)),
		-cmp.Compare(len(a.match.query), len(b.match.query)),
	)
}

// add puts a route behind the routes that are there.
func (l *listener) add(entry compiled) {
	l.host(entry.host).add(entry)
	for _, p := range entry.match.query {
		l.queryNames[p.name] = true
	}
}

// host returns the entry of a host name. It creates the entry if there is none.
func (l *listener) host(name string) *host {
	if name == "" {
		if l.any == nil {
			l.any = &host{}
		}
		return l.any
	}
	hosts := l.exact
	if parent, wildcard := strings.CutPrefix(name, "*."); wildcard {
		hosts, name = l.wildcard, parent
	}
	if hosts[name] == nil {
		hosts[name] = &host{}
	}
	return hosts[name]
}

// add puts a route behind the routes that are there.
func (h *host) add(entry compiled) {
	if entry.Transport != model.TransportHTTP {
		if h.stream == nil {
			h.stream = entry.Route
		}
		return
	}
	h.note(entry)
	switch entry.pathType {
	case PathExact:
		if h.exact == nil {
			h.exact = map[string][]*Route{}
		}
		h.exact[entry.path.text] = append(h.exact[entry.path.text], entry.Route)
	case PathRegularExpression:
		h.expressions = append(h.expressions, pathExpression{entry.path.expression, entry.path.literal, entry.path.size, entry.Route})
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

// note keeps what a route asks for.
func (h *host) note(entry compiled) {
	if h.asks == nil {
		h.asks, h.fields, h.foldedFields = map[string]*protection{}, map[string]bool{}, map[string]bool{}
	}
	h.asks[entry.protection.text] = &entry.protection
	h.asksUnknown = h.asksUnknown || entry.Unavailable != nil
	match := &entry.match
	for _, p := range match.headers {
		h.fields[p.name], h.foldedFields[fieldname.Folded(p.name)] = true, true
	}
	h.answersSome = h.answersSome || !entry.protection.sends && len(match.headers)+len(match.query) > 0
	h.takesAll = h.takesAll || entry.pathType != PathExact && entry.pathType != PathRegularExpression && len(entry.path.segments()) == 0 &&
		len(match.methods)+len(match.headers)+len(match.query) == 0
}
