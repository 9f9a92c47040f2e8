package cache

import (
	"fmt"
	"time"
)

const (
	// DefaultMaxBytes is the largest body that is kept, and MaxMaxBytes the largest one that may be asked for.
	DefaultMaxBytes = 1 << 20
	MaxMaxBytes     = 8 << 20
	// DefaultMaxAge bounds how long a response is given without asking the backend, and MaxMaxAge what may be asked for.
	DefaultMaxAge = time.Hour
	MaxMaxAge     = 30 * 24 * time.Hour
)

// Policy says what a route keeps. Nil: nothing.
type Policy struct {
	// Off takes the cache of something less specific away.
	Off bool
	// MaxBytes is the largest body that is kept. 0 means the default.
	MaxBytes int64
	// MaxAge bounds how long a response counts as fresh, whatever the backend says. 0 means the default.
	MaxAge time.Duration
}

// Complete returns the policy with its defaults. It is nil if nothing is to be kept.
func (p *Policy) Complete() (*Policy, error) {
	out := *p
	switch {
	case out.MaxBytes < 0 || out.MaxBytes > MaxMaxBytes:
		return nil, fmt.Errorf("maxBytes: %d is not from 1 to %d", out.MaxBytes, MaxMaxBytes)
	case out.MaxAge < 0 || out.MaxAge > MaxMaxAge:
		return nil, fmt.Errorf("maxAgeSeconds: %d is not from 1 to %d", int64(out.MaxAge/time.Second), int64(MaxMaxAge/time.Second))
	case out.Off:
		return nil, nil //nolint:nilnil // no policy is what is asked for
	}
	if out.MaxBytes == 0 {
		out.MaxBytes = DefaultMaxBytes
	}
	if out.MaxAge == 0 {
		out.MaxAge = DefaultMaxAge
	}
	return &out, nil
}
