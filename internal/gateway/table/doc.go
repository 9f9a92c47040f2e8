// Package table compiles the routes of an APIGateway into an immutable table and
// finds the route of a request in it. It is pure: the spec, endpoints and Secrets
// come in as plain values. It imports no client, no clock and no logger.
//
// A table is a map of hosts; each host has a trie of path prefixes, a map of exact
// paths and a list of regular expressions, and each of these places has its routes in
// the order in which they are asked. Of all routes that match a request the first in
// this order answers:
//
//  1. the host: without wildcard, then the longest wildcard, then none;
//  2. the path: Exact, then RegularExpression, then Prefix, and of the same type the
//     longest;
//  3. a route that names methods, then one that does not;
//  4. the one with the most headers, then with the most query parameters;
//  5. the one that comes first in the spec.
//
// This is the order of HTTPRoute, which leaves the place of regular expressions open.
// They come before prefixes because nearly every host has the prefix /, or a short
// one, for the rest, and no expression would ever be reached after a longer prefix.
//
// A route that cannot be served as written takes no other down. Where it can still be
// told which requests are meant, it keeps its place and is Unavailable: these
// requests are refused, because another route could be one without authentication.
// Only a route of which not even that is known is left out.
package table
