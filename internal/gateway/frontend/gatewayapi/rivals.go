package gatewayapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// Rivals are what other routes have of a route at the listeners of a parentRef, because their matches are the same and they come
// first.
type Rivals struct {
	// First is the first match that belongs to another route, and whose it is. Empty: there is none.
	First string
	// All tells that all of them do: no request comes to the route by the parentRef.
	All bool
}

// spot is what selects requests at a listener. Of the rules that are at the same one, a single rule gets them all.
type spot struct {
	listener int
	match    string
}

// NoteRivals finds out which matches get no request. Pods need not know it: they serve what the rules say.
func (g *Graph) NoteRivals() {
	firsts, matches := map[spot]int{}, make([]string, len(g.Rules))
	for i := range g.Rules {
		rule := &g.Rules[i].Rule
		matches[i] = matchText(rule)
		for _, l := range rule.Listeners {
			at := spot{l, matches[i]}
			if first, taken := firsts[at]; !taken || rule.Rank > g.Rules[first].Rank {
				firsts[at] = i
			}
		}
	}
	of := map[*Route]map[int][]*Parent{}
	for i := range g.Rules {
		rule := &g.Rules[i]
		if of[rule.Route] == nil {
			of[rule.Route] = rule.Route.parentsAt()
		}
		for _, l := range rule.Listeners {
			first := &g.Rules[firsts[spot{l, matches[i]}]]
			for _, parent := range of[rule.Route][l] {
				parent.note(rule, first)
			}
		}
	}
}

// parentsAt are the parentRefs that lead to each listener. Nothing is known of them yet.
func (r *Route) parentsAt() map[int][]*Parent {
	at := map[int][]*Parent{}
	for _, parent := range r.Parents {
		parent.Rivals = Rivals{}
		for _, l := range parent.Listeners {
			at[l] = append(at[l], parent)
		}
		parent.gets = false
	}
	return at
}

// note notes whose the requests of a rule are at a listener.
func (p *Parent) note(rule, first *Rule) {
	if first.Route == rule.Route {
		p.gets = true
	} else if p.Rivals.First == "" {
		p.Rivals.First = fmt.Sprintf("%s is that of %s", rule.place(), first.Route.seenFrom(rule.Route))
	}
	p.Rivals.All = !p.gets
}

// place is where the match of a rule stands.
func (r *Rule) place() string {
	from := &r.Route.rules[r.Place]
	switch {
	case r.Route.Kind == TLSRoute:
		return "hostnames: the name"
	case len(from.matches) == 1:
		return from.field + ": the match"
	default:
		return fmt.Sprintf("%s.matches[%d]: the match", from.field, r.match)
	}
}

// seenFrom names a route for who sees another one. Who may see a route need not know those of other namespaces.
func (r *Route) seenFrom(other *Route) string {
	if r.Name.Namespace == other.Name.Namespace {
		return fmt.Sprintf("%s %q", r.Kind, r.Name.Name)
	}
	return "a route of another namespace"
}

// matchText is the same for two rules that select the same requests of a listener. Their order is by rank, and then by place.
func matchText(rule *table.Rule) string {
	var text strings.Builder
	path := rule.Path
	if rule.PathType == table.PathPrefix {
		path = strings.TrimRight(path, "/")
	}
	fmt.Fprintf(&text, "%q %v %q %q %q", rule.Host, rule.Transport, rule.PathType, path, rule.Methods)
	for _, values := range [][]table.ValueMatch{rule.Headers, rule.Query} {
		sorted := slices.SortedFunc(slices.Values(values), func(a, b table.ValueMatch) int { return cmp.Compare(a.Name, b.Name) })
		text.WriteString(" |")
		for _, v := range sorted {
			fmt.Fprintf(&text, " %q %q %q", v.Name, v.Type, value(v.Value, "\x00"))
		}
	}
	return text.String()
}
