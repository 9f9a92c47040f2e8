// Package upstream sends requests to the endpoints of a Service, and opens connections to them
// whose bytes are the caller's. It keeps connections, balances the load, watches the health of
// endpoints, and retries what is safe to retry. A response is read on the goroutine of its
// request. An HTTP/1.1 connection has no goroutine of its own.
//
//	service.go       Service: the endpoints of a port, and sending a request to one
//	options.go       Options of a Service
//	registry.go      Registry: one Service per key, and background work for all
//	request.go       Request, and writing its head
//	response.go      Response, and reading its body
//	stored.go        a response that is in memory
//	errors.go        Error, and the kinds of failure
//	endpoint.go      one endpoint: its connections, load and health
//	affinity.go      sending a client to the same endpoint again
//	search.go        looking for an endpoint that can be reached
//	retry.go         which requests are sent again, and when
//	gate.go          limits of requests and connections, and who waits
//	eject.go         taking failing endpoints out of use for some time
//	health.go        active health checks
//	states.go        counting endpoints by their health
//	pool.go          HTTP/1.1 connections to an endpoint that are kept and used again
//	dialing.go       a connection that is being opened while its request may go elsewhere
//	conn.go          an HTTP/1.1 connection: one exchange after the other
//	buffer.go        reading from a connection
//	head.go          reading the head of a response
//	syntax.go        which bytes HTTP allows where
//	body.go          reading the body of an HTTP/1.1 response
//	send.go          sending the body of an HTTP/1.1 request
//	vigil.go         finding out that the client has gone while an endpoint does not read
//	unread.go        bounding what the kernel keeps of a response that nobody takes
//	windows.go       wide windows for responses, shared among clients
//	counted.go       a connection that counts until it is closed
//	vanished.go      closing connections to an endpoint that is gone
//	check_unix.go    whether an idle connection is still unchanged
//	records.go       TLS records, to know whether unread bytes are left
//	tls.go           TLS to endpoints
//	http2.go         an exchange over HTTP/2
//	http2_conns.go   HTTP/2 connections to an endpoint that requests share
//	http2_places.go  counting HTTP/2 connections in the limits of a Service
//	http2_body.go    sending the body of a request over HTTP/2
//	http2_source.go  the body of a request, which several attempts may read
//	http2_rest.go    what follows the head of a response over HTTP/2
//	http2_hints.go   informational responses over HTTP/2
//	stream.go        connections whose bytes are the caller's, and places for datagrams
package upstream
