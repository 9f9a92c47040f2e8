// Package api has the answers of the monitor's HTTP API, for those who give them and for those who ask. What each endpoint
// returns is described in docs/monitor-api.md.
//
//	api.go      what all answers have in common
//	answers.go  the answer of each endpoint
package api
