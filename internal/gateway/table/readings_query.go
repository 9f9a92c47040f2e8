package table

import "strings"

// receivedQuery is the query of a request for the readings of its path. Parameters that no
// route looks at are left out, as each reading is looked at with it.
type receivedQuery struct {
	relevant string // the parameters that routes look at
	// joinable begins with the first parameter, whichever it is: behind a query that came
	// out of the path and a question mark it is part of the last value there.
	joinable string
}

// receiveQuery returns nil where no route looks at a query.
func (t *Table) receiveQuery(raw string) *receivedQuery {
	if len(t.queryNames) == 0 {
		return nil
	}
	var relevant []string
	first, rest, _ := strings.Cut(raw, "&")
	for pair := range strings.SplitSeq(rest, "&") {
		if t.looksAt(pair) {
			relevant = append(relevant, pair)
		}
	}
	joinable := strings.Join(append([]string{first}, relevant...), "&")
	if t.looksAt(first) {
		return &receivedQuery{relevant: joinable, joinable: joinable}
	}
	return &receivedQuery{relevant: strings.Join(relevant, "&"), joinable: joinable}
}

// looksAt reports whether a route looks at a parameter.
func (t *Table) looksAt(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	name, ok := unescapeQuery(name)
	return ok && t.queryNames[name]
}

// of returns the queries with which a server may see a reading: the received one, and where
// the path was ended what followed there, alone and with the received one. A proxy that
// sends on what it has decoded puts a second question mark between the two, one that
// rewrites an ampersand or nothing.
func (q *receivedQuery) of(r reading) []string {
	switch {
	case q == nil:
		return []string{""}
	case !r.ended:
		return []string{q.relevant}
	default:
		return joinQueries(r.query, q.joinable)
	}
}

// cost is the length of what of returns, or more.
func (q *receivedQuery) cost(r reading) int {
	switch {
	case q == nil:
		return 0
	case !r.ended:
		return len(q.relevant)
	default:
		return 3*(len(r.query)+len(q.joinable)) + 2
	}
}

func joinQueries(a, b string) []string {
	if b == "" {
		return []string{a, b}
	}
	return []string{a, b, a + "&" + b, a + "?" + b} // "?b" where a is nothing: another name
}

// endPath adds what a reading becomes for a server that looks for the end of the path after
// it has decoded. What follows a question mark is a query then, of which the escapes have
// been decoded as often as those of the path: %26 and %3D of it part parameters after the
// first time and %2526 after the second, and as in every query the names and values are
// decoded once more when a route looks at them. A number sign takes what follows with it, the
// received query too, unless the server has put that aside before.
//
// The received query is read in one way. A server that decoded it before parting it would
// break every address in a parameter, as in ?next=%2Fa%3Fb%26c.
func (s *readings) endPath(r reading) {
	if s.query == nil {
		if at := strings.IndexAny(r.path, "\x00?#"); at >= 0 {
			s.add(reading{path: r.path[:at], decoded: r.decoded})
		}
		return
	}
	path, query, found := strings.Cut(r.path, "?")
	if found {
		s.addEnded(r, path, query)
	}
	for _, end := range []string{"\x00", "#"} {
		if earlier, _, ends := strings.Cut(r.path, end); ends {
			s.addEnded(r, earlier, "")
		}
		if earlier, _, ends := strings.Cut(query, end); ends {
			s.addEnded(r, path, earlier)
		}
	}
}

// addEnded adds a reading whose path ends earlier than that of r.
func (s *readings) addEnded(r reading, path, query string) {
	queries := []string{query}
	if r.ended {
		queries = joinQueries(query, r.query)
	}
	for _, query := range queries {
		s.add(reading{path: path, decoded: r.decoded, ended: true, query: query})
	}
}
