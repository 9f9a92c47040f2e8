// Package compress is what the gateway needs to compress responses. It knows no server and no
// backend, and does no I/O of its own.
//
//	coding.go    has the content codings and what a client accepts (RFC 9110, 12.5.3)
//	policy.go    has what a route asks for, and its defaults and checks
//	response.go  decides about one response, and changes its header fields
//	pool.go      has the encoders, and bounds how many are in use, also for each client and route
package compress
