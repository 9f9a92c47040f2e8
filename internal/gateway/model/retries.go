package model

import "time"

// Causes is a set of reasons to send a request again.
type Causes uint8

// The causes of a retry. For those with a status, a response is discarded.
const (
	OnConnectFailure Causes = 1 << iota
	OnReset
	OnTimeout
	OnStatus502
	OnStatus503
	OnStatus504
)

// Retries defines how often and for which causes a request is sent again.
type Retries struct {
	Attempts int
	On       Causes
	// Statuses are the status codes of responses for which a request is sent again.
	Statuses Statuses
	// Wait is the shortest time before a request is sent again.
	Wait time.Duration
}

// Statuses is a set of status codes from 400 to 599.
type Statuses [4]uint64

const (
	firstStatus = 400
	lastStatus  = 599
)

// StatusesOf returns the set of these status codes. Others than 400 to 599 are left out.
func StatusesOf(codes ...int) Statuses {
	var s Statuses
	for _, code := range codes {
		if code >= firstStatus && code <= lastStatus {
			s[(code-firstStatus)/64] |= 1 << ((code - firstStatus) % 64)
		}
	}
	return s
}

// Has reports whether the set has a status code.
func (s Statuses) Has(code int) bool {
	return code >= firstStatus && code <= lastStatus && s[(code-firstStatus)/64]&(1<<((code-firstStatus)%64)) != 0
}
