package table

import (
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

import "time"

const maxAttempts = 10 // of Retries

func compileLimits(e *compiled, rule *Rule) *model.Fault {
	e.MaxBodyBytes, e.Timeouts, e.Retries = rule.MaxBodyBytes, rule.Timeouts, rule.Retries
	if e.MaxBodyBytes < 0 {
		return model.Invalid("maxBodyBytes: %d is negative", e.MaxBodyBytes)
	}
	for _, timeout := range []struct {
		field string
		value time.Duration
	}{{"request", e.Timeouts.Request}, {"backend", e.Timeouts.Backend}, {"attempt", e.Timeouts.Attempt}, {"idle", e.Timeouts.Idle}} {
		if timeout.value < 0 {
			return model.Invalid("timeouts.%s: %v is negative", timeout.field, timeout.value)
		}
	}
	if f := compileRateLimit(e, rule); f != nil {
		return f
	}
	if e.Retries.Attempts < 0 || e.Retries.Attempts > maxAttempts {
		return model.Invalid("retries.attempts: %d is not from 0 to %d", e.Retries.Attempts, maxAttempts)
	}
	if e.Retries.Wait < 0 {
		return model.Invalid("retries.wait: %v is negative", e.Retries.Wait)
	}
	return nil
}

func compileRateLimit(e *compiled, rule *Rule) *model.Fault {
	if rule.RateLimit == nil {
		return nil
	}
	limit := *rule.RateLimit
	if limit.Per == PerKey && rule.Auth == nil {
		return model.Invalid("rateLimit.per: Key needs auth")
	}
	if limit.Requests < 1 || limit.Burst < 1 || limit.Period < time.Second {
		return model.Invalid("rateLimit: requests and burst must be at least 1, period at least 1s")
	}
	e.RateLimit = &limit
	return nil
}
