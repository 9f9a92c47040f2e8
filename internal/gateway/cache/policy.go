package cache

import "time"

// Policy is what a route keeps.
type Policy struct {
	// MaxBytes is the largest body that is kept.
	MaxBytes int64
	// MaxAge bounds how long a response counts as fresh, whatever the backend says.
	MaxAge time.Duration
}
