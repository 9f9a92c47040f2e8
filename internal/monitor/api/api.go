package api

import "time"

// Prefix is where the endpoints are.
const Prefix = "/api/v1/"

// The headers of requests and answers.
const (
	// LagHeader has View.Lag, in seconds, with three digits after the point.
	LagHeader = "Slipway-View-Lag"
	// UncoveredHeader has how many of the kinds in question are not covered.
	UncoveredHeader = "Slipway-View-Uncovered"
	// Audience is the audience of tokens that are for the monitor alone. The API server does not accept them.
	Audience = "slipway-monitor"
)

// View says how old an answer is.
type View struct {
	// Time is when the answer was made.
	Time time.Time `json:"time"`
	// Lag is the time in seconds by which the oldest of the kinds in question may be behind the cluster. Of a kind that is not
	// covered it is since when nothing was heard of it. It is -1 if nothing was ever heard of one of them.
	Lag float64 `json:"lagSeconds"`
	// Complete reports whether all kinds in question are covered: every change of them is seen.
	Complete bool `json:"complete"`
	// Uncovered are kinds in question that are not covered, at most 20, and UncoveredCount is how many there are.
	Uncovered      []Uncovered `json:"uncovered,omitempty"`
	UncoveredCount int         `json:"uncoveredCount,omitempty"`
}

// Uncovered is a kind of which changes may be missing, or come late.
type Uncovered struct {
	Kind   string    `json:"kind"`
	State  string    `json:"state"`
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
}
