package table

import "strings"

// receivedQuery is the query of a request, for the readings of its path. It leaves out
// parameters that no route of the listener looks at, because the query is checked with each reading.
type receivedQuery struct {
	relevant string // the parameters that routes look at
	// joinable begins with the first parameter, also if no route looks at it. A server may
	// join the queries with a second question mark. Then the first parameter is part of the
	// last value before it.
	joinable string
}

// receiveQuery returns nil if no route looks at a query.
func (l *listener) receiveQuery(raw string) *receivedQuery {
	if len(l.queryNames) == 0 {
		return nil
	}
	var relevant []string
	first, rest, _ := strings.Cut(raw, "&")
	for pair := range strings.SplitSeq(rest, "&") {
		if l.looksAt(pair) {
			relevant = append(relevant, pair)
		}
	}
	joinable := strings.Join(append([]string{first}, relevant...), "&")
	if l.looksAt(first) {
		return &receivedQuery{relevant: joinable, joinable: joinable}
	}
	return &receivedQuery{relevant: strings.Join(relevant, "&"), joinable: joinable}
}

// looksAt reports whether a route looks at a parameter.
func (l *listener) looksAt(pair string) bool {
	name, _, _ := strings.Cut(pair, "=")
	name, ok := unescapeQuery(name)
	return ok && l.queryNames[name]
}

// of returns the queries that a server may see with a reading. Usually it is the received
// query. If the path was ended, it is also what followed there, alone or joined with the
// received query. A proxy that forwards what it has decoded joins them with a second
// question mark. A proxy that rewrites joins them with an ampersand, or drops one.
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

// cost is at least the length of the result of of.
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
	return []string{a, b, a + "&" + b, a + "?" + b} // with an empty a, "?b" has another name than b
}

// endPath adds the readings of a server that looks for the end of the path after decoding.
// For such a server, what follows a question mark is a query. Its escapes were decoded as
// often as those of the path. So %26 and %3D separate parameters after the first decoding,
// and %2526 after the second. As in every query, names and values are decoded once more
// when a route looks at them. A number sign removes what follows it, including the received
// query, unless the server has split that off before.
//
// The received query has only one reading. A server that decoded it before splitting it
// would break every URL in a parameter, as in ?next=%2Fa%3Fb%26c.
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

// addEnded adds a reading with an earlier end of the path than that of r.
func (s *readings) addEnded(r reading, path, query string) {
	queries := []string{query}
	if r.ended {
		queries = joinQueries(query, r.query)
	}
	for _, query := range queries {
		s.add(reading{path: path, decoded: r.decoded, ended: true, query: query})
	}
}
