package cache

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of cache.
var Setting = feature.Setting[*Rule, *Policy]{
	Name:     "cache",
	Asked:    func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Cache != nil },
	Read:     read,
	Compile:  compile,
	Covers:   feature.Nothing,
	Inherits: feature.Withdrawn,
	Off:      func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.Cache.Mode == slipwayv1alpha1.CacheOff },
	NotGRPC:  true,
}

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Rule, *model.Fault) {
	in := settings.Cache
	for _, bound := range []struct {
		field string
		value *int32
	}{{"maxBytes", in.MaxBytes}, {"maxAgeSeconds", in.MaxAgeSeconds}} {
		if bound.value != nil && *bound.value < 1 {
			return nil, model.Invalid("cache.%s: %d is less than 1", bound.field, *bound.value)
		}
	}
	rule := &Rule{MaxBytes: int64(feature.Value(in.MaxBytes, 0)), MaxAge: time.Duration(feature.Value(in.MaxAgeSeconds, 0)) * time.Second}
	switch in.Mode {
	case "", slipwayv1alpha1.CacheStore:
	case slipwayv1alpha1.CacheOff:
		rule.Off = true
	default:
		return nil, model.Invalid("cache.mode: %q is neither Store nor Off", in.Mode)
	}
	return rule, nil
}

func compile(in *Rule, _ feature.Rule) (*Policy, *model.Fault) {
	switch {
	case in.MaxBytes < 0 || in.MaxBytes > maxCacheBytes:
		return nil, model.Invalid("cache.maxBytes: %d is not from 1 to %d", in.MaxBytes, maxCacheBytes)
	case in.MaxAge < 0 || in.MaxAge > maxCacheAge:
		return nil, model.Invalid(
			"cache.maxAgeSeconds: %d is not from 1 to %d", int64(in.MaxAge/time.Second), int64(maxCacheAge/time.Second))
	case in.Off:
		return nil, nil
	}
	policy := &Policy{MaxBytes: in.MaxBytes, MaxAge: in.MaxAge}
	if in.MaxBytes == 0 {
		policy.MaxBytes = defaultCacheBytes
	}
	if in.MaxAge == 0 {
		policy.MaxAge = defaultCacheAge
	}
	return policy, nil
}
