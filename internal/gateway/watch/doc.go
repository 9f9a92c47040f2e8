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
package watch
