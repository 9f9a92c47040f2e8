// Package alarm runs rules: it shows the engine of package rule what happens, stores what that remembers, and tells who has to be
// told.
//
// Alarms is the Observer of the recorder. What follows from a change, the states of rules and the messages about alarms, is stored
// with the change or not at all. Timers and what a new rule finds are stored behind the changes of the kind. So a crash at any
// moment loses no alarm, and a message that was not delivered is delivered after the restart, with the same key.
//
// # Files
//
//	alarm.go    Alarms, and what follows from a change
//	rules.go    which rules there are
//	follow.go   timers, and rules that are gone
//	review.go   what a new rule finds in objects that are there
//	event.go    alarms as Events of Kubernetes
//	webhook.go  webhooks, as they are configured
//	metrics.go  the metrics
//	answer.go   what the API says about rules
package alarm
