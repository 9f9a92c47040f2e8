// Package fault makes the API server fail for a controller, at one write after the
// other, so that a test can try every way in which a controller may be interrupted.
//
// A Gate stands in the transport of the operator: nothing the operator does escapes
// it. It counts the writes, and does at one of them what a Fault says. A CacheDelay stands
// between the API server and the operator's caches, and shows them what happens late,
// in part, or as it was. A Relay lists and watches for many operators at once. The
// package knows no kind.
//
//	gate.go             Gate: counts writes, and does what a fault says at one of them
//	faults.go           the faults that every write is tried with
//	cachedelay.go       CacheDelay: shows caches what happens late or as it was
//	listfirst.go        lists before watches, so that a list can be of the past
//	relay.go            Relay: one list and watch of a kind for many operators
//	relayed.go          what a relay has seen of one kind
//	relay_discovery.go  questions about kinds, which the API server answers once
//	relay_namespace.go  which namespace a cache asks for
package fault
