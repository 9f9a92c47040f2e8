// Package condition merges computed conditions into an object's status and tells
// which of them changed. It is pure: the clock is a parameter.
package condition
