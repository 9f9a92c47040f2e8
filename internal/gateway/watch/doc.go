// Package watch gets the configuration of a gateway from the API server: the gateway's own
// APIGateway, the Services and EndpointSlices of the namespace, and the Secrets that the
// spec names. It reads nothing else, and keeps only what it needs. While the API server is
// not reachable, the last configuration stays.
//
// Reflectors fill one store per kind. A change in a store wakes the loop of Source, which
// reads all stores, compiles a table and applies it. So a burst of changes leads to one new
// table, and the order of events does not matter.
package watch
