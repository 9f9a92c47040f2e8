package apigateway

import (
	"net/http"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

const (
	// maxDuration is the longest duration that a field may have.
	maxDuration = 24 * time.Hour
	// These are the defaults of a route.
	defaultBackendTimeout = time.Minute
	defaultAttempts       = 2
)

// addPolicies adds what can be wrong before the table sees it. A route with a fault serves
// nothing.
func (c *compiler) addPolicies(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	for _, add := range []func(*table.Rule, *slipwayv1alpha1.Route) *model.Fault{c.addClientAddresses, addTimeouts, addRateLimit, addRetries, addAffinity, c.addAuth, addRouteCompression, addRouteCache} {
		if f := add(rule, spec); f != nil {
			return f
		}
	}
	return nil
}

func addRouteCompression(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	if spec.Compression != nil && (spec.Redirect != nil || spec.DirectResponse != nil) {
		return invalid("compression needs backendService or backends")
	}
	return addCompression(rule, spec.Compression)
}

func parseDuration(field string, text slipwayv1alpha1.Duration, fallback time.Duration) (time.Duration, *model.Fault) {
	if text == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > maxDuration {
		return 0, invalid("%s: %q is not a duration such as 500ms or 10s of at most 24h", field, text)
	}
	return d, nil
}

func addTimeouts(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	timeouts := value(spec.Timeouts, slipwayv1alpha1.Timeouts{})
	var f *model.Fault
	if rule.Timeouts.Request, f = parseDuration("timeouts.request", timeouts.Request, 0); f != nil {
		return f
	}
	fallback := defaultBackendTimeout
	if timeouts.Request != "" {
		fallback = 0 // who says how long a request may take means it, also that there is no bound
	}
	if rule.Timeouts.Backend, f = parseDuration("timeouts.backend", timeouts.Backend, fallback); f != nil {
		return f
	}
	rule.Timeouts.IdleSet = timeouts.Idle != ""
	rule.Timeouts.Idle, f = parseDuration("timeouts.idle", timeouts.Idle, 0)
	return f
}

func addRateLimit(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
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
	shared, known := sharedBy(in.Count)
	if !known {
		return invalid("rateLimit.count: %q is not one of Replica and Gateway", in.Count)
	}
	rule.RateLimit = &table.RateLimit{Shared: shared, Requests: int64(in.Requests), Period: period, Burst: int64(value(in.Burst, in.Requests)), Per: per}
	return nil
}

func addRetries(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	in := value(spec.Retries, slipwayv1alpha1.Retries{})
	rule.Retries.Attempts = int(value(in.Attempts, defaultAttempts))
	for _, name := range in.RetryOn {
		cause := causeOf(name)
		if cause == 0 {
			return invalid("retries.retryOn: %q is not known", name)
		}
		rule.Retries.On |= cause
	}
	for _, code := range in.StatusCodes {
		if code < http.StatusBadRequest || code > 599 {
			return invalid("retries.statusCodes: %d is not from 400 to 599", code)
		}
		one := table.StatusesOf(int(code))
		for i := range one {
			rule.Retries.Statuses[i] |= one[i]
		}
	}
	if rule.Retries.On == 0 {
		rule.Retries.On = table.ConnectFailure
	}
	return nil
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

func scopeOf(name slipwayv1alpha1.RateLimitScope) (per table.Scope, known bool) {
	switch name {
	case "", slipwayv1alpha1.RateLimitPerClientAddress:
		return table.PerClientAddress, true
	case slipwayv1alpha1.RateLimitPerKey:
		return table.PerKey, true
	case slipwayv1alpha1.RateLimitPerRoute:
		return table.PerRoute, true
	default:
		return 0, false
	}
}

// causeOf returns 0 for an unknown name.
func causeOf(name slipwayv1alpha1.RetryCause) table.Causes {
	switch name {
	case slipwayv1alpha1.RetryConnectFailure:
		return table.ConnectFailure
	case slipwayv1alpha1.RetryReset:
		return table.Reset
	case slipwayv1alpha1.RetryTimeout:
		return table.Timeout
	case slipwayv1alpha1.Retry502:
		return table.Status502
	case slipwayv1alpha1.Retry503:
		return table.Status503
	case slipwayv1alpha1.Retry504:
		return table.Status504
	default:
		return 0
	}
}
