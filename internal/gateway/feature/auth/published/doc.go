// Package published fetches documents that providers of identities publish, in the
// background and never per request. It keeps the last good document, also when the routes
// that use it change.
//
//	registry.go  one source per address, and the loop that fetches
//	source.go    when an address is fetched, and the waits after failures
//	fetch.go     one request, with bounds for time, size and redirects
package published
