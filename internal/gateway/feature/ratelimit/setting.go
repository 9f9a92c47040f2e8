package ratelimit

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Setting is that of rateLimit.
var Setting = feature.Setting[*Limit, *Limit]{
	Name:    "rateLimit",
	Asked:   func(in *slipwayv1alpha1.GatewayPolicySettings) bool { return in.RateLimit != nil },
	Read:    read,
	Compile: compile,
	Covers:  feature.Restricts,
}

func read(settings *slipwayv1alpha1.GatewayPolicySettings, _ feature.Source) (*Limit, *model.Fault) {
	in := settings.RateLimit
	period, f := feature.Duration("rateLimit.period", in.Period, time.Second)
	if f != nil {
		return nil, f
	}
	per, known := scopeOf(in.Per)
	if !known {
		return nil, model.Invalid("rateLimit.per: %q is not one of ClientAddress, Key and Route", in.Per)
	}
	shared, known := sharedBy(in.Count)
	if !known {
		return nil, model.Invalid("rateLimit.count: %q is not one of Replica and Gateway", in.Count)
	}
	burst := feature.Value(in.Burst, in.Requests)
	return &Limit{Shared: shared, Requests: int64(in.Requests), Period: period, Burst: int64(burst), Per: per}, nil
}

// sharedBy reports whether all replicas count together.
func sharedBy(count slipwayv1alpha1.RateLimitCount) (shared, known bool) {
	switch count {
	case "", slipwayv1alpha1.RateLimitCountedByReplica:
		return false, true
	case slipwayv1alpha1.RateLimitCountedByGateway:
		return true, true
	default:
		return false, false
	}
}

func scopeOf(name slipwayv1alpha1.RateLimitScope) (per Scope, known bool) {
	switch name {
	case "", slipwayv1alpha1.RateLimitPerClientAddress:
		return PerClientAddress, true
	case slipwayv1alpha1.RateLimitPerKey:
		return PerKey, true
	case slipwayv1alpha1.RateLimitPerRoute:
		return PerRoute, true
	default:
		return 0, false
	}
}

func compile(asked *Limit, of feature.Rule) (*Limit, *model.Fault) {
	limit := *asked
	if limit.Per == PerKey && !of.Authenticates {
		return nil, model.Invalid("rateLimit.per: Key needs auth")
	}
	if limit.Requests < 1 || limit.Burst < 1 || limit.Period < time.Second {
		return nil, model.Invalid("rateLimit: requests and burst must be at least 1, period at least 1s")
	}
	return &limit, nil
}
