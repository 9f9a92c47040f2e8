package model

import (
	"time"
)

// Timeouts bound the parts of an exchange. 0 means no bound.
type Timeouts struct {
	// Request bounds the time from the arrival of the request to the end of the response.
	Request time.Duration
	// Backend bounds, for each attempt, the time from sending the request to the head of
	// the response.
	Backend time.Duration
	// Attempt bounds each attempt, from sending the request to the end of the response.
	Attempt time.Duration
	// Idle bounds how long no bytes of a body may come. Not set: the defaults of the proxy.
	Idle    time.Duration
	IdleSet bool
	// Patient tells that Request and Attempt alone bound how long a backend may take. It may pause within them.
	Patient bool
}
