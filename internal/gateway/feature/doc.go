// Package feature is the ground of the gateway's features. Each has a room below it, which is pure: what is asked for, how it is read
// from a policy, checked and completed, how it is inherited, and what it keeps out. The table compiles them and the front ends read
// them by package list, so neither knows any feature.
//
//	feature.go   Setting: what a feature says of itself
//	relation.go  whether who passes one rule passes another
//	read.go      reading durations, lists and defaults of a spec
//	header.go    names of header fields that a spec may have
//	cookies.go   names of cookies that belong to the gateway
package feature
