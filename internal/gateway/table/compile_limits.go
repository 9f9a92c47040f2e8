package table

import "time"

const maxAttempts = 10 // of Retries

func compileLimits(e *compiled, rule *Rule) *Fault {
	e.MaxBodyBytes, e.Timeouts, e.Retries = rule.MaxBodyBytes, rule.Timeouts, rule.Retries
	if e.MaxBodyBytes < 0 {
		return invalid("maxBodyBytes: %d is negative", e.MaxBodyBytes)
	}
	for _, timeout := range []struct {
		field string
		value time.Duration
	}{{"request", e.Timeouts.Request}, {"backend", e.Timeouts.Backend}, {"attempt", e.Timeouts.Attempt}, {"idle", e.Timeouts.Idle}} {
		if timeout.value < 0 {
			return invalid("timeouts.%s: %v is negative", timeout.field, timeout.value)
		}
	}
	if f := compileRateLimit(e, rule); f != nil {
		return f
	}
	if e.Retries.Attempts < 0 || e.Retries.Attempts > maxAttempts {
		return invalid("retries.attempts: %d is not from 0 to %d", e.Retries.Attempts, maxAttempts)
	}
	if e.Retries.Wait < 0 {
		return invalid("retries.wait: %v is negative", e.Retries.Wait)
	}
	return nil
}

func compileRateLimit(e *compiled, rule *Rule) *Fault {
	if rule.RateLimit == nil {
		return nil
	}
	limit := *rule.RateLimit
	if limit.Per == PerKey && rule.Auth == nil {
		return invalid("rateLimit.per: Key needs auth")
	}
	if limit.Requests < 1 || limit.Burst < 1 || limit.Period < time.Second {
		return invalid("rateLimit: requests and burst must be at least 1, period at least 1s")
	}
	e.RateLimit = &limit
	return nil
}
