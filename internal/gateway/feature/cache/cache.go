// Package cache says which responses are kept. It is pure.
package cache

import "time"

// These are the bounds of a Rule.
const (
	defaultCacheBytes = 1 << 20
	maxCacheBytes     = 8 << 20
	defaultCacheAge   = time.Hour
	maxCacheAge       = 30 * 24 * time.Hour
)

// Rule says which responses of backends are kept.
type Rule struct {
	// Off takes the cache of something less specific away.
	Off bool
	// MaxBytes is the largest body that is kept. 0 means the default.
	MaxBytes int64
	// MaxAge bounds how long a response counts as fresh, whatever the backend says. 0 means the default.
	MaxAge time.Duration
}

// Policy is a compiled Rule. Both bounds are set.
type Policy struct {
	MaxBytes int64
	MaxAge   time.Duration
}
