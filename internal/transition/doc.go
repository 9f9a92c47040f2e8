// Package transition turns changes of conditions into events: an event when
// something happens, none while nothing does.
package transition
