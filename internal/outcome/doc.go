// Package outcome gives errors a policy and turns the errors of one pass into
// the one ctrl.Result of that pass. It is the only place that makes a
// ctrl.Result, so "retry?", "when?" and "what does status say?" are answered
// together and cannot contradict each other.
//
//	Invalid    a user must act: Stalled=True, no retry until something changes
//	Waiting    something is expected to happen: look again after a while, no error
//	Transient  an attempt failed: retry with backoff, reported
//	Quiet      an attempt lost a race (conflict, namespace going away): retry or
//	           stop without a word to the user
package outcome
