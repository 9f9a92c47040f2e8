// Package peers connects the replicas of a gateway, so that they can share rate limits (package quota).
//
// Every pod of the cluster can open a connection to the port, so both sides prove that they have the secret of the gateway
// before a byte of the protocol is read: TLS 1.3 with a key pair that each replica derives from the secret. Who does not have
// it can neither take nor give tokens, nor read anything.
//
// A replica opens one connection to each other, and asks by it. The other one answers. Frames have a fixed form, queues are
// bounded, and what does not come for a second ends the connection.
//
//	identity.go  what is derived from the secret
//	frame.go     the protocol
//	link.go      a connection to another replica
//	serve.go     connections from other replicas
//	pending.go   connections that have proved nothing yet
//	mesh.go      all of them, and the ring that follows from them
//	shared.go    what a gateway uses: all of this, as its configuration says
package peers
