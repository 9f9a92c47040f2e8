package apigateway

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func addRouteCache(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	return addCache(rule, spec.Cache)
}

// addCache adds which responses are kept. The table checks it.
func addCache(rule *table.Rule, in *slipwayv1alpha1.Cache) *model.Fault {
	if in == nil {
		return nil
	}
	for _, bound := range []struct {
		field string
		value *int32
	}{{"maxBytes", in.MaxBytes}, {"maxAgeSeconds", in.MaxAgeSeconds}} {
		if bound.value != nil && *bound.value < 1 {
			return invalid("cache.%s: %d is less than 1", bound.field, *bound.value)
		}
	}
	policy := &table.CacheRule{MaxBytes: int64(value(in.MaxBytes, 0)), MaxAge: time.Duration(value(in.MaxAgeSeconds, 0)) * time.Second}
	switch in.Mode {
	case "", slipwayv1alpha1.CacheStore:
	case slipwayv1alpha1.CacheOff:
		policy.Off = true
	default:
		return invalid("cache.mode: %q is neither Store nor Off", in.Mode)
	}
	rule.Cache = policy
	return nil
}
