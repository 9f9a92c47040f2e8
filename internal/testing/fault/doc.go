// Package fault makes the API server fail for a controller, at one write after the
// other, so that a test can try every way in which a controller may be interrupted.
//
// A Gate stands in the transport of the operator: nothing the operator does escapes
// it. It counts the writes, and does at one of them what a Fault says. A CacheDelay stands
// between the API server and the operator's caches, and shows them what happens late,
// in part, or as it was. A Relay lists and watches for many operators at once. The
// package knows no kind.
package fault
