// Package status writes what a controller has to say of an object: the conditions, the status when it differs, and an event
// when something has happened. At steady state it writes nothing. The conditions are pure: the clock is a parameter.
//
//	writer.go       writing a status where it differs
//	condition.go    making and merging conditions
//	summary.go      the conditions Available, Progressing and Degraded, from pods and errors
//	terminating.go  conditions of an object that is being deleted
//	events.go       events for what has happened
//	recorder.go     a recorder of events without secrets, and not too many
//	secrets.go      a status without secrets
package status
