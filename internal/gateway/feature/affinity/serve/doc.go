// Package serve sends the requests of a client to the endpoint that it knows.
//
//	affinity.go    which endpoint a client's requests go to
//	pins.go        cookies and headers that name an endpoint
package serve
