// Package status writes what a controller has to say of an object: its status, when it
// differs, and an event when something has happened. At rest it does neither.
package status
