// Package watch gets the configuration of a gateway from the API server. It reads nothing
// else, and keeps only what it needs. While the API server is not reachable, the last
// configuration stays.
//
// Source follows an APIGateway: the APIGateway itself, the Services and EndpointSlices of its
// namespace, and the Secrets and ConfigMaps that the spec names. GatewaySource follows a Gateway of the
// Gateway API: the Gateway, the routes, ListenerSets, policies and grants of all namespaces,
// and the Services, EndpointSlices, Namespaces and Secrets that matter for them.
//
// Reflectors fill stores. A change in a store wakes the loop of the source (follower), which
// reads all stores, compiles a table and applies it. So a burst of changes leads to one new
// table, and the order of events does not matter.
//
//	source.go                Source: follows an APIGateway
//	loop.go                  from the state of an APIGateway to a table that is served
//	object.go                reading an APIGateway strictly, part by part
//	gateway_source.go        GatewaySource: follows a Gateway of the Gateway API
//	gateway_state.go         what a Gateway and its routes need, and watching it
//	gateway_serve.go         from the state of a Gateway to a table that is served
//	gateway_object.go        reading Gateways, routes and ReferenceGrants
//	gateway_sets.go          reading ListenerSets
//	gateway_policies.go      reading BackendTLSPolicies
//	gateway_attached.go      reading GatewayPolicies
//	gateway_certificates.go  certificates of the listeners of a Gateway
//	gateway_tls.go           copies of authorities, for clients and backends
//	follower.go              the loop that all sources have: wake, look, tell
//	survive.go               what a panic does: the last table stays
//	group.go                 a set of watches of one kind
//	store.go                 objects of one kind, reduced to what is needed
//	client.go                clients for the API server, and its reflectors
//	contact.go               whether each watch hears from the API server
//	backends.go              Services and EndpointSlices
//	secrets.go               Secrets
//	authorities.go           ConfigMaps with certificates of authorities
//	certificates.go          certificates of an APIGateway
//	clients.go               how clients of an APIGateway prove who they are
//	streams.go               streams of an APIGateway
//	sessions.go              the key by which replicas choose endpoints alike
//	sharing.go               counting requests for all replicas together
//	problems.go              which problems are told, and how many
package watch
