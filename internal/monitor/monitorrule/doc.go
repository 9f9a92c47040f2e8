// Package monitorrule is the controller of MonitorRules: it says whether the monitor evaluates a rule, and for which objects its
// alarm stands. It runs in slipway-monitor, beside what evaluates the rules, and not in the operator, which has no history.
//
// A rule has no children, so there is nothing that could drift.
//
//	controller.go  Reconcile
//	setup.go       watches, and when to look again
//	scope.go       what one reconcile knows
//	status.go      the status
//	metrics.go     the metrics
package monitorrule
