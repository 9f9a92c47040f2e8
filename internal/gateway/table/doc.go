// Package table compiles rules into an immutable table, and finds the route of a request in
// it. It is pure: rules, endpoints and the contents of Secrets are passed as plain values. It
// imports no client, no clock and no logger, and no API of Kubernetes. The front ends make
// rules of the objects of their API: package apigateway of an APIGateway.
//
// A table has listeners, by port and host name. A request belongs to the listener of its port
// that fits its host best, and only the routes of this listener are looked at. So a listener
// with a host name keeps the requests for this host from the routes of all others.
//
// A listener is a map of hosts. Each host has a trie of path prefixes, a map of exact paths
// and a list of regular expressions. Each entry of these holds its routes in order of
// precedence. If several routes of a listener match a request, the route is chosen by:
//
//  1. the host: one without wildcard, then the longest wildcard, then a route without host;
//  2. the path: Exact, then RegularExpression, then Prefix, and of the same type the
//     longest;
//  3. a route that names methods, then one that does not;
//  4. the route with the most headers, then with the most query parameters;
//  5. the route that comes first in the list of rules.
//
// This is the order of HTTPRoute, which does not define the rank of regular expressions.
// Here they come before prefixes. Nearly every host has the prefix / or another short
// prefix for all other requests, and after it no expression would ever be reached. A front
// end with another order gives its rules a Rank, which comes before 3 and 4, and among
// regular expressions before their length.
//
// A rule for connections or datagrams that are not read has a Transport, and is selected by its listener and host alone. It
// is in the listeners of this Transport only, and of several for a host the first one counts.
//
// A rule that cannot be served as written does not affect other rules. If it is known which
// requests the rule matches, it keeps its place and is Unavailable: these requests are
// refused, because another route could answer them without authentication. A rule is left
// out only if even its requests are unknown.
//
//	rule.go              Input, Listener and Rule: what a table is made from
//	table.go             Table: listeners by port, and what is in them
//	compile.go           Compile, and the order of routes
//	compile_match.go     compiling what a rule matches
//	compile_action.go    compiling what a rule does: its settings, edits, redirect, answer, mirrors
//	compile_backend.go   compiling the Services that a rule names, and that it asks about requests
//	compile_retries.go   compiling timeouts and retries
//	check.go             checking rules one by one, before they are compiled
//	listener.go          listeners by port and host name
//	route.go             Route: a compiled rule, and choosing a backend by weight
//	match.go             finding the route of a request
//	stream.go            finding the route of a connection or a datagram
//	host.go              reading the host of a request
//	path.go              reading the path of a request
//	query.go             reading query parameters
//	readings.go          the ways in which servers may read a path
//	readings_query.go    the queries that servers may see with a path
//	protection.go        whether a path that reads in more than one way can get around a rule
//	controls.go          control characters in paths and fields
//	expression.go        regular expressions, and what they may cost
//	texts.go             expressions and paths that were compiled before
//	action.go            what a route does with the path: rewrite and redirect
//	affinity.go          choosing the backend of a session
//	backend_settings.go  settings of the backends of some rules, in place of those for all
//	returns.go           rules at which log-ins cannot end, because the answer comes to another rule
package table
