// Package outcome gives errors a policy and turns the errors of one reconcile into
// its one ctrl.Result. It is the only place that makes a
// ctrl.Result, so "retry?", "when?" and "what does status say?" are answered
// together and cannot contradict each other.
//
//	Invalid    a user must change what is watched: Stalled=True, not tried again until
//	           something changes
//	Blocked    a user must act on what no watch shows: Stalled=True, tried again after a
//	           while or with backoff
//	Transient  an attempt failed: retry with backoff, reported
//	Waiting    something is expected to happen: look again after a while, no error
//	Quiet      an attempt lost to another writer (conflict, namespace going away): retry or
//	           stop without a word to the user
//
//	outcome.go  Error, its policies, and the one result of a reconcile
//	backoff.go  pauses that double with every retry that fails
//	options.go  options of every controller
//	queue.go    a queue that is fair among namespaces
//	turns.go    the order of that queue
package outcome
