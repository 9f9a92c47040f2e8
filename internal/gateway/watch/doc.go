// Package watch is where a gateway in Kubernetes has its configuration from: its own
// APIGateway, the Services and EndpointSlices of the namespace, and the Secrets that the
// spec names. It asks the API server for nothing else, keeps little of what it gets, and
// serves on with what it has while the API server is away.
//
// Reflectors fill a shelf per kind. Whatever changes on one wakes the loop of Source,
// which looks at everything there is, compiles it and hands it over. So a burst of
// changes is one new table, and no order of events can lead to another end.
package watch
