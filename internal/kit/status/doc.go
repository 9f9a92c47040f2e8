// Package status writes what a controller has to say of an object: the conditions, the status when it differs, and an event
// when something has happened. At steady state it writes nothing. The conditions are pure: the clock is a parameter.
package status
