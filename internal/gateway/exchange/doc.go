// Package exchange is one request and its answer, as features see them: who the client is, what it asks for, what it gets. It knows no
// table of routes and no feature. Whoever serves requests makes exchanges, finds their routes and sends them to backends (Core).
//
//	exchange.go  Exchange: a request that is being answered
//	request.go   what the client asks for
//	steps.go     what features do on one route, and what they note about one request
//	client.go    who sends a request
//	answer.go    refusing a request, and answering it
//	hint.go      heads of 1xx
//	grpc.go      refusals and timeouts of gRPC
//	body.go      reading the body of an HTTP/1 request
//	stream.go    bodies over HTTP/2, in both directions
//	whole.go     reading a whole body before a backend gets it
package exchange
