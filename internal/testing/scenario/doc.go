// Package scenario plays what happens to an operator against a real API server, with
// and without something that goes wrong, and reports whether the end, and the way to it,
// are the same.
//
// A Scenario is data: steps, and how pods behave. A Trial is what goes wrong in a run:
// one thing all along, or one after the other.
// A Bench plays scenarios, each in a namespace and with an operator of its own, and a
// Recorder sees every version of every object meanwhile. The package knows no kind: what
// is observed is data too.
//
//	scenario.go  Kind, Scenario and Step, and reading them from files
//	bench.go     Bench: plays a scenario with what goes wrong
//	step.go      doing what a step says
//	stage.go     steps that follow each other at once, and what goes wrong in them
//	place.go     the namespaces of a run, and what its objects are called in every run
//	places.go    how many runs go on at a time
//	settle.go    waiting until the cluster is at steady state
//	pace.go      how long an operator may take
//	queues.go    whether the controllers of an operator have anything left to do
//	shown.go     what the controllers of an operator were shown by their caches
//	shows.go     what an object has to show after a step
//	recorder.go  Recorder: sees every version of every object
//	mask.go      removing what differs from run to run
//	oracle.go    Outcome, and whether two runs came to the same in the same way
//	good.go      revisions that were called good too soon
//	late.go      writes after the end
//	drift.go     changing each field that the operator owns
//	random.go    random scenarios with random faults, and making one smaller that fails
//	release.go   what an older release left, and upgrading from it
//	table.go     counting what passed
//	times.go     how long the operator took
package scenario
