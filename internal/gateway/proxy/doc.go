// Package proxy is the data path of the gateway. It finds the route of a request in the
// table, and does what the route says. It serves HTTP/1.1, HTTP/2 and upgraded connections. Of listeners
// that are not for HTTP it forwards connections and datagrams as they are.
//
//	handler.go                Handler: serves requests by the table
//	call.go                   one request that is being served: finding its route, choosing its backend
//	order.go                  the order of features, and what holds on every route
//	features.go               what features have in common, and for one table
//	host.go                   the host of a request
//	target.go                 the target of a request: path and query
//	client.go                 the address of a client, and the fields that tell it
//	identity.go               who a client has proven to be with a certificate
//	clients.go                how clients have to prove who they are
//	underway.go               counting requests in flight
//	forward.go                sending a request to a backend
//	respond.go                sending a response to the client
//	tunnel.go                 connections that leave HTTP, such as WebSocket
//	metrics_routes.go         metrics of the routes of a table
//	report_stream.go          what is logged and counted of connections and sessions
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
