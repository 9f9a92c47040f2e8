// Package ratelimit says how many requests come through. It is pure.
package ratelimit

import "time"

// Limit bounds the rate of requests.
type Limit struct {
	// Requests are allowed in each Period. Up to Burst of them may come at once.
	Requests int64
	Period   time.Duration
	Burst    int64
	Per      Scope
	// Shared means that all replicas count together.
	Shared bool
}

// Scope says which requests are counted together.
type Scope uint8

// The scopes of a rate limit.
const (
	PerClientAddress Scope = iota
	PerKey
	PerRoute
)
