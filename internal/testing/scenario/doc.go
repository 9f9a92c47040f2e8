// Package scenario plays what happens to an operator against a real API server, with
// and without something that goes wrong, and tells whether the end, and the way to it,
// are the same.
//
// A Scenario is data: steps, and how pods behave. A Trial is what goes wrong in a run:
// one thing all along, or one after the other.
// A Bench plays scenarios, each in a namespace and with an operator of its own, and a
// Recorder sees every version of every object meanwhile. The package knows no kind: what
// is observed is data too.
package scenario
