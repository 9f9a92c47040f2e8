package table

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

import "time"

// These are the bounds of a CacheRule.
const (
	defaultCacheBytes = 1 << 20
	maxCacheBytes     = 8 << 20
	defaultCacheAge   = time.Hour
	maxCacheAge       = 30 * 24 * time.Hour
)

// CacheRule says which responses of backends are kept.
type CacheRule struct {
	// Off takes the cache of something less specific away.
	Off bool
	// MaxBytes is the largest body that is kept. 0 means the default.
	MaxBytes int64
	// MaxAge bounds how long a response counts as fresh, whatever the backend says. 0 means the default.
	MaxAge time.Duration
}

// Cache is a compiled CacheRule. Both bounds are set.
type Cache struct {
	MaxBytes int64
	MaxAge   time.Duration
}

func compileCache(e *compiled, rule *Rule) *model.Fault {
	in := rule.Cache
	switch {
	case in == nil:
		return nil
	case in.MaxBytes < 0 || in.MaxBytes > maxCacheBytes:
		return model.Invalid("cache.maxBytes: %d is not from 1 to %d", in.MaxBytes, maxCacheBytes)
	case in.MaxAge < 0 || in.MaxAge > maxCacheAge:
		return model.Invalid("cache.maxAgeSeconds: %d is not from 1 to %d", int64(in.MaxAge/time.Second), int64(maxCacheAge/time.Second))
	case in.Off:
		return nil
	}
	e.Cache = &Cache{MaxBytes: in.MaxBytes, MaxAge: in.MaxAge}
	if in.MaxBytes == 0 {
		e.Cache.MaxBytes = defaultCacheBytes
	}
	if in.MaxAge == 0 {
		e.Cache.MaxAge = defaultCacheAge
	}
	return nil
}
