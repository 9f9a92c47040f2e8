// Package proxy is the data path of the gateway. It finds the route of a request in the
// table, and does what the route says. It serves HTTP/1.1, HTTP/2 and upgraded connections. Of listeners
// that are not for HTTP it forwards connections and datagrams as they are.
//
//	handler.go                Handler: serves requests by the table
//	exchange.go               one request: finding its route, refusing it, answering it
//	steps.go                  what features do on one route, and what they note about one request
//	order.go                  the order of features, and what holds on every route
//	host.go                   the host of a request
//	target.go                 the target of a request: path and query
//	client.go                 the client's address, and the fields that tell it
//	identity.go               who a client has proven to be with a certificate
//	clients.go                how clients have to prove who they are
//	underway.go               counting requests in flight
//	auth.go                   API keys and passwords
//	passwords.go              comparing passwords, which takes time, for one guess after the other
//	token.go                  signed tokens
//	oidc.go                   log-ins at a provider
//	oidc_cookies.go           cookies of log-ins
//	external.go               asking a Service about a request over HTTP
//	external_grpc.go          asking a Service about a request over gRPC
//	judged.go                 reading a whole body before a Service judges it
//	address.go                which addresses of clients are let in
//	cors.go                   answers to pages of other origins
//	limit.go                  rate limits
//	affinity.go               which endpoint a client's requests go to
//	pins.go                   cookies and headers that name an endpoint
//	sessionkey.go             the key of such names
//	caching.go                responses out of the cache, and into it
//	compression.go            compressing responses
//	maintenance.go            answers while a route is closed
//	mirror.go                 copies of requests
//	forward.go                sending a request to a backend
//	respond.go                sending a response to the client
//	body.go                   reading the body of an HTTP/1 request
//	pace.go                   how long a client may be silent
//	stream.go                 bodies over HTTP/2, in both directions
//	grpc.go                   statuses and timeouts of gRPC
//	tunnel.go                 connections that leave HTTP, such as WebSocket
//	metrics_routes.go         metrics of the routes of a table
//	report_stream.go          what is logged and counted of connections and sessions
//	metrics_auth.go           metrics of auth
//	metrics_cache.go          metrics of the cache
//	metrics_compression.go    metrics of compression
//	metrics_external.go       metrics of Services that are asked
//	crash.go                  what is done after a panic
//	config.go                 the part of a spec that concerns all requests
//	backends.go               health of the endpoints of every backend
//	health.go                 health checks of backends
//	server.go                 Server: listens, and stops in good order
//	ports.go                  opening and closing ports
//	conn.go                   connections of clients
//	conns.go                  connections that net/http does not know any more
//	halfclose.go              what is known when a client has closed its side
//	alerts.go                 how a handshake ends whose name nobody has
//	certificates.go           choosing a certificate by server name
//	certificates_listener.go  certificates of listeners
//	sorter.go                 which listener a connection with TLS is for
//	streams.go                ports for TCP
//	relay.go                  forwarding a connection
//	datagrams.go              ports for UDP
//	receive_unix.go           waiting for a datagram
package proxy
