package table

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// NoReturn is a rule at which log-ins cannot end, because a request of the provider's answer, or one to log out, comes to another
// rule.
type NoReturn struct {
	model.Problem
	// Host is the only host for which that is so: a narrower one than that of the rule, with rules of its own. Its owner may be
	// somebody else, so the rule serves the other hosts. Empty: it is so for the host of the rule.
	Host string

	at int // in compiler.compiled
}

// NoReturns returns the rules at which log-ins cannot end, as Compile tells them. It needs no Services, and no client secrets.
func NoReturns(in Input) []NoReturn {
	in.Rules, in.Settings = besideLogins(in.Rules), nil
	c, _ := compile(in)
	return c.noReturns()
}

// besideLogins returns the rules that may get requests of a host with a log-in. Most gateways have few of them.
func besideLogins(rules []Rule) []Rule {
	with, wider := map[string]bool{}, map[string]bool{}
	for i := range rules {
		if rules[i].Auth != nil && rules[i].Auth.OIDC != nil && !with[rules[i].Host] {
			with[rules[i].Host] = true
			for _, pattern := range patternsOf(rules[i].Host) {
				wider[pattern] = true
			}
		}
	}
	var beside []Rule
	for i := range rules {
		if wider[rules[i].Host] || slices.ContainsFunc(patternsOf(rules[i].Host), func(pattern string) bool { return with[pattern] }) {
			beside = append(beside, rules[i])
		}
	}
	return beside
}

// patternsOf returns a host and the wider ones.
func patternsOf(host string) []string {
	patterns := []string{host, ""}
	for name, found := strings.TrimPrefix(host, "*."), true; found; {
		if _, name, found = strings.Cut(name, "."); found {
			patterns = append(patterns, "*."+name)
		}
	}
	return patterns
}

// checkReturns refuses the rules at which log-ins cannot end. Browsers would be sent to the provider again and again. Where a
// narrower host is concerned, Table.Returns tells that.
func (c *compiler) checkReturns() {
	for _, found := range c.noReturns() {
		c.problems = append(c.problems, found.Problem)
		if entry := &c.compiled[found.at]; found.Host == "" && entry.Unavailable == nil {
			entry.Unavailable = &found.Problem
		}
	}
}

// returns looks for the rules at which log-ins cannot end.
type returns struct {
	*compiler
	// asks is what the rules of routes ask of clients, also if they cannot be served.
	asks map[*Route]*auth.Policy
	// lost are the hosts that are narrower than another one, and at which another log-in, or none, gets the requests for a path.
	lost map[lostKey][]string
}

// maxLost bounds the hosts that are looked at for each rule. Nobody begins a log-in at the others either: Table.Returns looks at the
// host of each request.
const maxLost = 100

type lostKey struct {
	at                *listener
	host, scope, path string
}

func (c *compiler) noReturns() []NoReturn {
	if !slices.ContainsFunc(c.compiled, func(entry compiled) bool { return entry.logIn() != nil }) {
		return nil
	}
	r := returns{compiler: c, asks: make(map[*Route]*auth.Policy, len(c.compiled)), lost: map[lostKey][]string{}}
	for i := range c.compiled {
		r.asks[c.compiled[i].Route] = c.compiled[i].asks
	}
	var list []NoReturn
	for i := range c.compiled {
		if entry := &c.compiled[i]; entry.logIn() != nil {
			for _, found := range r.check(entry) {
				found.at = i
				list = append(list, found)
			}
		}
	}
	return list
}

// logIn is the log-in that the rule of a route asks for, also if it cannot be served.
func (e *compiled) logIn() *auth.OIDC {
	if e.asks == nil {
		return nil
	}
	return e.asks.OIDC
}

// ownPath is a path that the gateway answers itself, and the field of the spec.
type ownPath struct{ field, path string }

func ownPathsOf(login *auth.OIDC) []ownPath {
	paths := []ownPath{{"redirectPath", login.RedirectPath}}
	if login.LogoutPath != "" {
		paths = append(paths, ownPath{"logoutPath", login.LogoutPath})
	}
	return paths
}

func shareSessions(one, other *auth.OIDC) bool {
	return other != nil && one.Scope != "" && one.Scope == other.Scope
}

// check returns one reason at the most why log-ins cannot end at a route.
func (r *returns) check(entry *compiled) []NoReturn {
	tell := func(host, format string, args ...any) []NoReturn {
		f := model.Invalid(format, args...)
		return []NoReturn{{Host: host, Problem: model.Problem{Index: entry.Index, Route: entry.Name, Reason: f.Reason, Message: f.Message}}}
	}
	const missing = "do not come to this route, nor to another one of the same host with the same auth.oidc (claimsToHeaders may differ)"
	login, listeners := entry.logIn(), r.listenersOf(*entry)
	for _, own := range ownPathsOf(login) {
		for _, l := range listeners {
			if to := l.match(plainRequest(entry.host, own.path)); to != entry.Route && !r.shares(to, login) {
				return tell("", "auth.oidc.%s: requests for %q "+missing, own.field, own.path)
			}
		}
	}
	for _, own := range ownPathsOf(login) {
		for _, l := range listeners {
			if !entry.isFoundAt(l, entry.host) {
				continue // it has conditions that a browser's request need not fulfil
			}
			for _, host := range r.lostUnder(l, entry.host, login, own.path) {
				if entry.isFoundAt(l, host) {
					return tell(host, "auth.oidc.%s: requests for %q of host %q "+missing+", so log-ins are refused at that host", own.field, own.path, host)
				}
			}
		}
	}
	return nil
}

// unnamed is a path that no rule names.
const unnamed = "/\x00"

// isFoundAt reports whether requests of a host come to a route: for its path, or for one below it that no other rule names. Nobody
// knows that of a regular expression.
func (e *compiled) isFoundAt(l *listener, host string) bool {
	path := e.path.text
	return e.path.expression != nil || l.match(plainRequest(host, path)) == e.Route ||
		l.match(plainRequest(host, strings.TrimSuffix(path, "/")+unnamed)) == e.Route
}

// plainRequest is one that a browser may send. A pattern is a host that no other pattern covers, but wider ones.
func plainRequest(host, path string) *Request {
	return &Request{Method: http.MethodGet, Host: host, Path: path, Header: http.Header{}}
}

// shares reports whether a route has the same log-in.
func (r *returns) shares(to *Route, login *auth.OIDC) bool {
	if to == nil {
		return false
	}
	asks := r.asks[to]
	return asks != nil && shareSessions(login, asks.OIDC)
}

// lostUnder returns the hosts that are narrower than a pattern, have rules of their own for some paths but not for all, and at
// which the requests for a path come to another log-in, or to none.
func (r *returns) lostUnder(l *listener, pattern string, login *auth.OIDC, path string) []string {
	parent, wildcard := strings.CutPrefix(pattern, "*")
	if pattern != "" && !wildcard {
		return nil // none is narrower
	}
	key := lostKey{l, pattern, login.Scope, path}
	if known, found := r.lost[key]; found && login.Scope != "" {
		return known
	}
	var lost []string
	look := func(name string, rules *host) {
		if name == pattern || !strings.HasSuffix(name, parent) || rules.find(plainRequest(name, unnamed)) != nil {
			return
		}
		if to := rules.find(plainRequest(name, path)); to != nil && !r.shares(to, login) {
			lost = append(lost, name)
		}
	}
	for name, rules := range l.exact {
		look(name, rules)
	}
	for name, rules := range l.wildcard {
		look("*."+name, rules)
	}
	slices.Sort(lost)
	lost = lost[:min(len(lost), maxLost)]
	r.lost[key] = lost
	return lost
}

// Returns reports whether the requests with which a log-in ends come to a route with the same one, if it is begun by a request.
func (t *Table) Returns(r *Request, from *Route) bool {
	login := from.Auth.OIDC
	for _, own := range ownPathsOf(login) {
		back := *plainRequest(r.Host, own.path)
		back.Port, back.Secure = r.Port, r.Secure
		if to := t.Match(&back); to != from && (to == nil || to.Auth == nil || !shareSessions(login, to.Auth.OIDC)) {
			return false
		}
	}
	return true
}
