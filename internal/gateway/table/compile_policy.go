package table

import (
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// maxDuration is the longest duration that a field may have.
const maxDuration = 24 * time.Hour

func parseDuration(field string, text slipwayv1alpha1.Duration, fallback time.Duration) (time.Duration, *fault) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > maxDuration {
		return 0, invalid("%s: %q is not a duration such as 500ms or 10s of at most 24h", field, text)
	}
	return d, nil
}

func compileLimits(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	e.MaxBodyBytes = value(spec.MaxBodyBytes, 0)
	if e.MaxBodyBytes < 0 {
		return invalid("maxBodyBytes: %d is negative", e.MaxBodyBytes)
	}
	timeouts := value(spec.Timeouts, slipwayv1alpha1.Timeouts{})
	var f *fault
	if e.Timeouts.Request, f = parseDuration("timeouts.request", timeouts.Request, 0); f != nil {
		return f
	}
	if e.Timeouts.Backend, f = parseDuration("timeouts.backend", timeouts.Backend, defaultBackendTimeout); f != nil {
		return f
	}
	e.Timeouts.IdleSet = timeouts.Idle != ""
	if e.Timeouts.Idle, f = parseDuration("timeouts.idle", timeouts.Idle, 0); f != nil {
		return f
	}
	return compileRateLimit(e, spec)
}

func compileRateLimit(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	if spec.RateLimit == nil {
		return nil
	}
	in := spec.RateLimit
	period, f := parseDuration("rateLimit.period", in.Period, time.Second)
	if f != nil {
		return f
	}
	per, known := scopeOf(in.Per)
	if !known {
		return invalid("rateLimit.per: %q is not one of ClientAddress, Key and Route", in.Per)
	}
	if per == PerKey && spec.Auth == nil {
		return invalid("rateLimit.per: Key needs auth")
	}
	limit := &RateLimit{Requests: int64(in.Requests), Period: period, Burst: int64(value(in.Burst, in.Requests)), Per: per}
	if limit.Requests < 1 || limit.Burst < 1 || limit.Period < time.Second {
		return invalid("rateLimit: requests and burst must be at least 1, period at least 1s")
	}
	e.RateLimit = limit
	return nil
}

func compileRetries(e *compiled, spec *slipwayv1alpha1.Route) *fault {
	in := value(spec.Retries, slipwayv1alpha1.Retries{})
	e.Retries.Attempts = int(value(in.Attempts, defaultAttempts))
	if e.Retries.Attempts < 0 || e.Retries.Attempts > 10 {
		return invalid("retries.attempts: %d is not from 0 to 10", e.Retries.Attempts)
	}
	for _, name := range in.RetryOn {
		cause := causeOf(name)
		if cause == 0 {
			return invalid("retries.retryOn: %q is not known", name)
		}
		e.Retries.On |= cause
	}
	e.Retries.On = orDefault(e.Retries.On, ConnectFailure)
	return nil
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

// causeOf returns 0 for an unknown name.
func causeOf(name slipwayv1alpha1.RetryCause) Causes {
	switch name {
	case slipwayv1alpha1.RetryConnectFailure:
		return ConnectFailure
	case slipwayv1alpha1.RetryReset:
		return Reset
	case slipwayv1alpha1.RetryTimeout:
		return Timeout
	case slipwayv1alpha1.Retry502:
		return Status502
	case slipwayv1alpha1.Retry503:
		return Status503
	case slipwayv1alpha1.Retry504:
		return Status504
	default:
		return 0
	}
}
