// Package operator assembles the manager that the controllers run in: what is
// cached and why, leader election with a warm standby, probes, metrics, and the
// registration of every controller.
//
//	operator.go     Options, the manager, and Run
//	kinds.go        the list of kinds, and what their controllers have in common
//	controllers.go  registering a controller for each kind
//	seams.go        where a test takes the place of what is around an operator
//	cache.go        what is cached, and why
//	caches.go       all caches, for the documentation
//	scheme.go       the kinds that the operator knows
//	transport.go    writes that are sent once, and refusals that say how long to wait
//	excess.go       rights that the operator has and does not need
//	metrics.go      metrics that are about no kind
package operator
