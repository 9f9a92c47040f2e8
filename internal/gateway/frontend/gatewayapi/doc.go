// Package gatewayapi computes what a Gateway serves, and every status that speaks of it, from the
// objects of the Gateway API. It is pure: no client, no clock and no logger. The operator
// takes the status from it, and the pods of the gateway take their listeners and rules from
// the same computation.
//
// The rules are those of the Gateway API v1.6 (the comments of its types). In short:
//
//   - A listener is served when its protocol is supported, it conflicts with no other one, and
//     a certificate of it can be used, where it needs one. Of conflicting listeners none is
//     served: the order of the list decides nothing.
//
//   - The listeners of ListenerSets come after those of the Gateway, and an older set comes before a younger one. Of these the
//     first keeps its place, and a later one that conflicts with it is not served.
//
//   - A route attaches to the listeners that its parentRef selects, that allow its kind and its
//     namespace, and whose hostname has a name in common with its own hostnames.
//
//   - A reference to another namespace needs a ReferenceGrant there.
//
//   - Of the settings of GatewayPolicies for a rule, each by itself, the override with the least
//     specific target holds, or else the default with the most specific one. Compression can be taken away from an override.
//
//   - What cannot be served as it is written keeps its place and answers 500: another rule
//     would answer its requests otherwise, perhaps with fewer restrictions.
//
// Files:
//
//	graph.go                    what goes in, and what comes out
//	refs.go                     what objects refer to
//	listeners.go                which listeners are served
//	sets.go                     the listeners of ListenerSets
//	limited.go                  what is not known where Slipway is limited to some namespaces
//	overlap.go                  which listeners for HTTPS have names in common
//	hostname.go                 which names a listener and a route have in common
//	attach.go                   which listeners a route attaches to
//	clients.go                  how clients prove who they are, and what backends are shown
//	policies.go                 which backends are reached with TLS
//	gateway_policies.go         GatewayPolicies and what each target has of them
//	gateway_policy_refs.go      what GatewayPolicies refer to
//	gateway_policy_services.go  the Services that GatewayPolicies have asked about requests
//	inherit.go                  which settings of GatewayPolicies hold for a rule
//	inherit_off.go              who can take compression and the cache away
//	enforce.go                  what a policy asks for and is not enforced
//	health_checks.go            how many ports policies may have checked
//	session.go                  the sessionPersistence of a rule
//	shared.go                   for what the pods need each other, or a secret in common
//	logins.go                   at which rules log-ins of GatewayPolicies could not end
//	grants.go                   which references to other namespaces are permitted
//	rule.go                     what rules of all kinds have in common
//	match.go                    which requests or calls a rule matches
//	filters.go                  the filters of rules
//	backends.go                 the backends of rules
//	http.go                     the rules of HTTPRoutes
//	grpc.go                     the rules of GRPCRoutes
//	streams.go                  listeners and rules for TLS, TCP and UDP
//	unknown.go                  fields of later versions
//	conditions.go               the conditions, as data
//	table.go                    what the pods make their table from
//	rivals.go                   matches that get no request, because another route has the same
package gatewayapi
