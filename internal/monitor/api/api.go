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
	// Complete tells that all kinds in question are covered: every change of them is seen.
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

// Failure is the answer of a request that failed.
type Failure struct {
	// Code is the HTTP status, and Reason a word for it that programs may rely on.
	Code   int    `json:"code"`
	Reason Reason `json:"reason"`
	// Message says what is wrong and what to do about it.
	Message string `json:"message"`
	// Challenge says how to prove who one is: the header WWW-Authenticate of the answer, if there is one.
	Challenge string `json:"-"`
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Reason says why a request failed.
type Reason string

const (
	// BadRequest is a request that has no meaning: a parameter that is unknown, or has a form that it may not have.
	BadRequest Reason = "BadRequest"
	// Unauthenticated is a request without a token, or with one that is not valid, or not any more.
	Unauthenticated Reason = "Unauthenticated"
	// NotFound is something that does not exist, or that the user may not list. Nobody is told which.
	NotFound Reason = "NotFound"
	// NotAllowed is a method that the endpoint does not have, or a request of another page.
	NotAllowed Reason = "NotAllowed"
	// TooLarge is a request with too much in it.
	TooLarge Reason = "TooLarge"
	// WrongHost is a request with a name in its Host header that is not one of the monitor's.
	WrongHost Reason = "WrongHost"
	// TooMany is one request too many of this user, or of all. It may be tried again later.
	TooMany Reason = "TooMany"
	// Unavailable is something the monitor needs and cannot have at present. It may be tried again later.
	Unavailable Reason = "Unavailable"
	// Internal is an error of the monitor. Its log says more.
	Internal Reason = "Internal"
)
