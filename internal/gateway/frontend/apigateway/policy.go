package apigateway

import (
	"net/http"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

const (
	// These are the defaults of a route.
	defaultBackendTimeout = time.Minute
	defaultAttempts       = 2
)

func addTimeouts(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	timeouts := feature.Value(spec.Timeouts, slipwayv1alpha1.Timeouts{})
	var f *model.Fault
	if rule.Timeouts.Request, f = feature.Duration("timeouts.request", timeouts.Request, 0); f != nil {
		return f
	}
	fallback := defaultBackendTimeout
	if timeouts.Request != "" {
		fallback = 0 // who says how long a request may take means it, also that there is no bound
	}
	if rule.Timeouts.Backend, f = feature.Duration("timeouts.backend", timeouts.Backend, fallback); f != nil {
		return f
	}
	rule.Timeouts.IdleSet = timeouts.Idle != ""
	rule.Timeouts.Idle, f = feature.Duration("timeouts.idle", timeouts.Idle, 0)
	return f
}

func addRetries(rule *table.Rule, spec *slipwayv1alpha1.Route) *model.Fault {
	in := feature.Value(spec.Retries, slipwayv1alpha1.Retries{})
	rule.Retries.Attempts = int(feature.Value(in.Attempts, defaultAttempts))
	for _, name := range in.RetryOn {
		cause := causeOf(name)
		if cause == 0 {
			return model.Invalid("retries.retryOn: %q is not known", name)
		}
		rule.Retries.On |= cause
	}
	for _, code := range in.StatusCodes {
		if code < http.StatusBadRequest || code > 599 {
			return model.Invalid("retries.statusCodes: %d is not from 400 to 599", code)
		}
		one := model.StatusesOf(int(code))
		for i := range one {
			rule.Retries.Statuses[i] |= one[i]
		}
	}
	if rule.Retries.On == 0 {
		rule.Retries.On = model.OnConnectFailure
	}
	return nil
}

// causeOf returns 0 for an unknown name.
func causeOf(name slipwayv1alpha1.RetryCause) model.Causes {
	switch name {
	case slipwayv1alpha1.RetryConnectFailure:
		return model.OnConnectFailure
	case slipwayv1alpha1.RetryReset:
		return model.OnReset
	case slipwayv1alpha1.RetryTimeout:
		return model.OnTimeout
	case slipwayv1alpha1.Retry502:
		return model.OnStatus502
	case slipwayv1alpha1.Retry503:
		return model.OnStatus503
	case slipwayv1alpha1.Retry504:
		return model.OnStatus504
	default:
		return 0
	}
}
